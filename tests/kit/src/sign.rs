//! Signatures as minisign makes them.

use std::io::Cursor;

use minisign::KeyPair;

/// Someone who signs.
pub struct Signer(KeyPair);

impl Signer {
    /// With a key of its own.
    pub fn new() -> Signer {
        Signer(KeyPair::generate_unencrypted_keypair().expect("a key pair"))
    }

    /// Its public key, as a configuration has it.
    pub fn public(&self) -> String {
        self.0.pk.to_base64()
    }

    /// The text of a `.minisig` file.
    pub fn sign(&self, bytes: &[u8]) -> String {
        minisign::sign(None, &self.0.sk, Cursor::new(bytes), None, None).expect("signed").into_string()
    }
}

impl Default for Signer {
    fn default() -> Signer {
        Signer::new()
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Signer").field(&self.public()).finish()
    }
}
