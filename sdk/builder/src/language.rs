use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::error::FolderError;

/// The languages in which a policy can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Language {
    /// Compiled by rustc; links `jackfield-sdk`.
    #[default]
    Rust,
    /// Taken into a component by componentize-py, interpreter included.
    Python,
    /// Or TypeScript; taken into a component by componentize-qjs, QuickJS included.
    JavaScript,
    /// Compiled by clang; needs no C library.
    C,
}

impl Language {
    /// All four.
    pub const ALL: [Language; 4] = [Language::Rust, Language::Python, Language::JavaScript, Language::C];

    /// Its name on the command line: `rust`, `python`, `javascript` or `c`.
    pub fn name(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::Python => "python",
            Language::JavaScript => "javascript",
            Language::C => "c",
        }
    }

    /// The file by which a policy folder is known to be in this language.
    pub fn main_file(self) -> &'static str {
        match self {
            Language::Rust => "Cargo.toml",
            Language::Python => "app.py",
            Language::JavaScript => "app.js",
            Language::C => "policy.c",
        }
    }

    /// Whether its main file lies in a folder; JavaScript's may be written in TypeScript.
    fn lies_in(self, folder: &Path) -> bool {
        let typed = self == Language::JavaScript && folder.join("app.ts").is_file();
        typed || folder.join(self.main_file()).is_file()
    }

    /// The language of a policy folder, by the main file that lies in it.
    ///
    /// # Errors
    /// [`FolderError::NoSource`] where none lies there, [`FolderError::TwoLanguages`] where more than one does.
    pub fn of(folder: &Path) -> Result<Language, FolderError> {
        let present = |language: &Language| language.lies_in(folder);
        let mut found = Language::ALL.into_iter().filter(present);
        match (found.next(), found.next()) {
            (Some(language), None) => Ok(language),
            (Some(first), Some(second)) => {
                Err(FolderError::TwoLanguages { path: folder.to_owned(), first, second })
            }
            (None, _) => Err(FolderError::NoSource { path: folder.to_owned() }),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = FolderError;

    fn from_str(name: &str) -> Result<Language, FolderError> {
        let language = Language::ALL.into_iter().find(|language| language.name() == name);
        language.ok_or_else(|| FolderError::Language { language: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for language in Language::ALL {
            assert_eq!(language.to_string().parse::<Language>().ok(), Some(language));
        }
        let error = "perl".parse::<Language>().expect_err("no such language").to_string();
        assert!(error.contains("perl") && error.contains("rust, python, javascript or c"), "{error}");
    }

    #[test]
    fn a_folder_is_in_the_language_of_its_main_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let put = |name: &str| std::fs::write(folder.path().join(name), "").expect("written");
        let none = Language::of(folder.path()).expect_err("nothing there").to_string();
        assert!(none.contains("Cargo.toml, app.py, app.js (or app.ts) or policy.c"), "{none}");
        put("policy.c");
        assert_eq!(Language::of(folder.path()).ok(), Some(Language::C));
        put("app.py");
        let two = Language::of(folder.path()).expect_err("two").to_string();
        assert!(two.contains("app.py") && two.contains("policy.c"), "{two}");
        let typed = tempfile::tempdir().expect("a folder");
        std::fs::write(typed.path().join("app.ts"), "").expect("written");
        assert_eq!(Language::of(typed.path()).ok(), Some(Language::JavaScript));
    }
}
