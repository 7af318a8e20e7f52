//! A form of several parts, as uploads are sent.

use sha2::{Digest, Sha256};

use super::Body;

/// A part: its name, its content type, its content.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) content: Vec<u8>,
}

/// The parts as one body.
pub(super) fn body(parts: &[Part]) -> Body {
    let boundary = boundary(parts);
    let mut bytes = Vec::new();
    for part in parts {
        let Part { name, kind, content } = part;
        bytes.extend(
            format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\ncontent-type: {kind}\r\n\r\n")
                .into_bytes(),
        );
        bytes.extend(content);
        bytes.extend(b"\r\n");
    }
    bytes.extend(format!("--{boundary}--\r\n").into_bytes());
    Body { kind: format!("multipart/form-data; boundary={boundary}"), bytes }
}

/// A line that no part holds: it is made of the digest of all.
fn boundary(parts: &[Part]) -> String {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(&part.content));
    let digest: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("jackfield-{digest}")
}
