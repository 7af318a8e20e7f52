//! From references to uploads: all of them, or a reason why not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use jackfield_policy::{Manifest, Upload};
use serde_json::Value;
use ureq::http::Uri;

use super::cache::{Cache, Component, Lock};
use super::fetch::Asking;
use super::{Digest, FetchError, Source, oci};
use crate::config::{FileOrTable, PolicyRef, Settings};
use crate::policies::{self, COMPONENT, PolicyFolder, PrebuiltError, is_policy_folder, policy_folders};

/// Of a signature.
const MOST_SIGNATURE_BYTES: usize = 64 << 10;

/// Makes uploads of what the settings name.
pub(crate) struct Resolver<'a> {
    settings: &'a Settings,
    cache: Cache,
}

/// All that is to be in force, and what it came from.
pub(crate) struct Resolved {
    pub(crate) uploads: Vec<Upload>,
    /// Whether someone gave a list, if an empty one: without one, nothing is said of what is in force.
    pub(crate) is_list: bool,
    /// Where the file names each of them.
    places: BTreeMap<String, String>,
    cache: Cache,
    lock: Lock,
    used: BTreeSet<Digest>,
}

/// What is wrong, and where the file says so.
#[derive(Debug)]
pub(crate) struct Problem {
    place: Option<String>,
    message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Resolved {
    /// What is wrong with one of them, with the place where the file names it.
    pub(crate) fn problem(&self, name: &str, message: impl fmt::Display) -> Problem {
        Problem { place: self.places.get(name).cloned(), message: format!("policy {name}: {message}") }
    }

    /// From now on the references stand for these bytes. To be called once they are in force.
    pub(crate) fn pin(&self) -> io::Result<()> {
        if !self.lock.pins.is_empty() {
            self.lock.write()?;
        }
        self.cache.keep(&self.used)
    }
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(settings: &'a Settings) -> Resolver<'a> {
        Resolver { settings, cache: Cache::under(&settings.state) }
    }

    /// What can be said without asking anyone and without anything that was kept.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let mut names = BTreeSet::new();
        for upload in self.folder()? {
            take(&mut names, &upload.manifest.name).map_err(|message| Problem { place: None, message })?;
        }
        for (index, reference) in self.settings.references.iter().enumerate() {
            let name = match &reference.source {
                Source::Path(path) => self.local(reference, path).map(|upload| upload.manifest.name),
                Source::Url(_) | Source::Image(_) => {
                    self.data(reference, None).map(|(manifest, _)| manifest.name)
                }
            };
            name.and_then(|name| take(&mut names, &name)).map_err(|message| self.problem(index, message))?;
        }
        Ok(())
    }

    /// Everything, or the first thing that is wrong.
    pub(crate) fn resolve(self) -> Result<Resolved, Problem> {
        let nowhere = |message| Problem { place: None, message };
        let mut lock = Lock::read(&self.settings.state).map_err(nowhere)?;
        let mut uploads = self.folder()?;
        let (mut names, mut used, mut places) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        for upload in &uploads {
            take(&mut names, &upload.manifest.name).map_err(nowhere)?;
        }
        for (index, reference) in self.settings.references.iter().enumerate() {
            let upload = match &reference.source {
                Source::Path(path) => self.local(reference, path),
                Source::Url(_) | Source::Image(_) => self.remote(reference, &mut lock, &mut used),
            };
            let named = upload.and_then(|upload| take(&mut names, &upload.manifest.name).map(|()| upload));
            let upload = named.map_err(|message| self.problem(index, message))?;
            places.extend(self.place(index).map(|place| (upload.manifest.name.clone(), place)));
            uploads.push(upload);
        }
        let is_list = self.settings.file.is_some() || self.settings.policies.is_some();
        Ok(Resolved { uploads, is_list, places, cache: self.cache, lock, used })
    }

    fn place(&self, index: usize) -> Option<String> {
        self.settings.file.as_ref()?.place(&format!("policy.{index}.source"))
    }

    fn problem(&self, index: usize, message: String) -> Problem {
        let source = self.settings.references.get(index).map(|reference| reference.source.to_string());
        Problem {
            place: self.place(index),
            message: format!("policy {}: {message}", source.unwrap_or_default()),
        }
    }

    /// The built policies of `policies = DIR`.
    fn folder(&self) -> Result<Vec<Upload>, Problem> {
        let Some(dir) = &self.settings.policies else { return Ok(Vec::new()) };
        let problem = |message: String| Problem {
            place: self.settings.file.as_ref().and_then(|file| file.place("policies")),
            message,
        };
        // Told apart from a folder that has nothing in it.
        fs::read_dir(dir).map_err(|error| problem(format!("{}: {error}", dir.display())))?;
        let folders = policy_folders(dir);
        if folders.is_empty() {
            return Err(problem(PrebuiltError::Empty(dir.clone()).to_string()));
        }
        folders.iter().map(|folder| self.built(folder).map_err(problem)).collect()
    }

    /// A built policy folder as it is.
    fn built(&self, folder: &Path) -> Result<Upload, String> {
        let component = built_component(folder)?;
        self.check_signature(&component).map_err(|error| format!("{}: {error}", folder.display()))?;
        PolicyFolder::new(folder).with_component(component.bytes.into()).map_err(|error| error.to_string())
    }

    fn local(&self, reference: &PolicyRef, path: &Path) -> Result<Upload, String> {
        let (component, folder) = if path.is_dir() {
            (built_component(path)?, Some(path))
        } else {
            let component = read_component(path).map_err(|error| format!("it cannot be read: {error}"))?;
            (component, path.parent().filter(|folder| is_policy_folder(folder)))
        };
        if let Some(wanted) = &reference.digest {
            let found = Digest::of(&component.bytes);
            if found != *wanted {
                return Err(format!("its component is {found}, and `digest` says {wanted}"));
            }
        }
        self.check_signature(&component)?;
        self.upload(reference, component, folder)
    }

    fn remote(
        &self,
        reference: &PolicyRef,
        lock: &mut Lock,
        used: &mut BTreeSet<Digest>,
    ) -> Result<Upload, String> {
        let name = reference.source.to_string();
        let (digest, component) = self.fetch(reference, lock.pins.get(&name))?;
        used.insert(digest.clone());
        if reference.digest.is_none() {
            lock.pins.insert(name, digest);
        }
        self.upload(reference, component, None)
    }

    /// The bytes that are kept, where they are those that the reference stands for; otherwise what it leads to.
    fn fetch(&self, reference: &PolicyRef, pinned: Option<&Digest>) -> Result<(Digest, Component), String> {
        let stands_for = reference.digest.as_ref().or(pinned.filter(|_| !reference.update));
        if let Some(kept) = stands_for.and_then(|digest| self.kept(digest)) {
            return Ok(kept);
        }
        let component = match self.download(&reference.source) {
            Ok(component) => component,
            Err(error) => {
                let kept = pinned.filter(|_| error.is_passing() && stands_for.is_none());
                let Some(kept) = kept.and_then(|digest| self.kept(digest)) else {
                    return Err(error.to_string());
                };
                tracing::warn!(source = %reference.source, digest = %kept.0, %error, "what was kept is served");
                return Ok(kept);
            }
        };
        let found = Digest::of(&component.bytes);
        if let Some(wanted) = stands_for
            && found != *wanted
        {
            let hint = match &reference.digest {
                Some(_) => "put the right `digest` there, if it should be these bytes",
                None => {
                    "it was pinned when it was first taken: give `update = true` to have what it stands for now, or its \
                     `digest`"
                }
            };
            let (what, wanted) = ("the component".to_owned(), wanted.clone());
            return Err(FetchError::Digest { what, found, wanted, hint }.to_string());
        }
        self.check_signature(&component)?;
        self.cache.put(&found, &component).map_err(|error| format!("it cannot be kept: {error}"))?;
        Ok((found, component))
    }

    /// What is kept and would be taken today: keys may have changed since.
    fn kept(&self, digest: &Digest) -> Option<(Digest, Component)> {
        let component = self.cache.get(digest)?;
        self.check_signature(&component).ok().map(|()| (digest.clone(), component))
    }

    fn download(&self, source: &Source) -> Result<Component, FetchError> {
        let fetching = &self.settings.fetching;
        match source {
            Source::Path(path) => Err(FetchError::Address(path.display().to_string())),
            Source::Image(image) => {
                let (bytes, signature) = oci::pull(fetching, image)?;
                Ok(Component { bytes, signature })
            }
            Source::Url(uri) => {
                let missing = || FetchError::Status { url: source.to_string(), status: 404 };
                let bytes = fetching.find(uri, &Asking::default())?.ok_or_else(missing)?;
                Ok(Component { bytes, signature: self.signature_at(uri)? })
            }
        }
    }

    /// The text beside a component; none where nobody would look at it.
    fn signature_at(&self, uri: &Uri) -> Result<Option<String>, FetchError> {
        if self.settings.keys.is_empty() {
            return Ok(None);
        }
        let mut parts = uri.clone().into_parts();
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("{}.minisig{query}", uri.path());
        parts.path_and_query = Some(path.parse().map_err(|_| FetchError::Address(path))?);
        let beside = Uri::from_parts(parts).map_err(|_| FetchError::Address(uri.to_string()))?;
        let asking = Asking { most_bytes: Some(MOST_SIGNATURE_BYTES), ..Asking::default() };
        let answer = self.settings.fetching.get(&beside, &asking)?;
        match answer.status.as_u16() {
            200 => Ok(Some(String::from_utf8_lossy(&answer.bytes).into_owned())),
            // Stores of files say 403 of what is not there, some of them.
            400..=499 => Ok(None),
            status => Err(FetchError::Status { url: beside.to_string(), status }),
        }
    }

    fn check_signature(&self, component: &Component) -> Result<(), String> {
        let checked = self.settings.keys.check(&component.bytes, component.signature.as_deref());
        checked.map_err(|error| error.to_string())
    }

    fn upload(
        &self,
        reference: &PolicyRef,
        component: Component,
        folder: Option<&Path>,
    ) -> Result<Upload, String> {
        let component: Arc<[u8]> = component.bytes.into();
        let (manifest, config) = self.data(reference, folder)?;
        // Recorded cases belong to the configuration that they were recorded with.
        let own = folder.filter(|_| reference.config.is_none());
        let cases = own.map(|folder| PolicyFolder::new(folder).with_component(Arc::clone(&component)));
        let cases = cases.transpose().map_err(|error| error.to_string())?;
        Ok(Upload { manifest, component, config, cases: cases.map(|own| own.cases).unwrap_or_default() })
    }

    /// Manifest and configuration: of the reference, or of the folder.
    fn data(&self, reference: &PolicyRef, folder: Option<&Path>) -> Result<(Manifest, Value), String> {
        let own = folder.map(PolicyFolder::new);
        let data = own.as_ref().map(PolicyFolder::data).transpose().map_err(|error| error.to_string())?;
        let mut manifest = match (&reference.manifest, own.as_ref().zip(data.as_ref())) {
            (Some(FileOrTable::File(path)), _) => {
                let text = policies::read_text(path).map_err(|failure| failure.into_message())?;
                Manifest::from_toml(&text).map_err(|error| format!("{}: {error}", path.display()))?
            }
            (Some(FileOrTable::Table(table)), _) => {
                table.clone().try_into().map_err(|error| format!("its manifest: {error}"))?
            }
            (None, Some((own, data))) => own.manifest(data).map_err(|error| error.to_string())?,
            (None, None) => {
                return Err("it comes without a manifest; give `manifest`: a policy.toml, or a table".into());
            }
        };
        if let Some(name) = &reference.name {
            manifest.name.clone_from(name);
        }
        manifest.validate().map_err(|error| format!("its manifest: {error}"))?;
        let config = match (&reference.config, data) {
            (Some(FileOrTable::File(path)), _) => {
                policies::read_config(path).map_err(|failure| failure.into_message())?
            }
            (Some(FileOrTable::Table(table)), _) => {
                serde_json::to_value(table).map_err(|error| format!("its configuration: {error}"))?
            }
            (None, Some(data)) => data.config,
            (None, None) => Value::Object(Default::default()),
        };
        Ok((manifest, config))
    }
}

fn built_component(folder: &Path) -> Result<Component, String> {
    if !is_policy_folder(folder) {
        return Err(format!("{} has no policy.toml", folder.display()));
    }
    read_component(&folder.join(COMPONENT))
        .map_err(|_| PrebuiltError::NotBuilt(folder.to_owned()).to_string())
}

/// A component and what lies beside it.
fn read_component(path: &Path) -> io::Result<Component> {
    let signature = fs::read_to_string(policies::signature_path(path)).ok();
    Ok(Component { bytes: fs::read(path)?, signature })
}

/// Notes a name, which no other policy may have.
fn take(names: &mut BTreeSet<String>, name: &str) -> Result<(), String> {
    if names.insert(name.to_owned()) {
        return Ok(());
    }
    Err(format!("`{name}` is the name of another policy too; give one of them another with `name = \"…\"`"))
}
