use crate::{Description, Field, Slot, Span, Value};

impl Description {
    /// A policy that accepts any configuration and neither reads nor writes dialogs.
    ///
    /// Mostly `Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))`.
    pub fn new(name: &str, version: &str) -> Description {
        Description {
            name: name.to_owned(),
            version: version.to_owned(),
            config_schema: "{}".to_owned(),
            dialog_schema: 0,
            reads_dialog_schemas: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// With the JSON Schema of its configuration, mostly `include_str!("../config.schema.json")`.
    pub fn with_config_schema(self, json_schema: &str) -> Description {
        Description { config_schema: json_schema.to_owned(), ..self }
    }

    /// With the version of the dialog schema it writes, and the older ones it reads.
    pub fn with_dialog_schema(self, writes: u32, reads: &[u32]) -> Description {
        Description { dialog_schema: writes, reads_dialog_schemas: reads.to_vec(), ..self }
    }
}

impl Field {
    /// A named text.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Field {
        Field { name: name.into(), value: value.into() }
    }
}

impl Span {
    /// The half-open range of bytes `start..end`; offsets beyond 4 GiB do not occur and become the largest u32.
    pub fn new(range: std::ops::Range<usize>) -> Span {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: offset(range.start), end: offset(range.end) }
    }

    /// The range for slicing a string.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Slot {
    /// A slot found at `source` in the utterance, with confidence 1.
    pub fn found(name: &str, value: Value, source: Span) -> Slot {
        Slot { name: name.to_owned(), value, source: Some(source), confidence: 1.0 }
    }
}
