//! Who may sign policies, and whether one of them signed this component. Signatures are those of minisign: Ed25519 over the
//! BLAKE2b hash of the component, detached, in a small text file.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use minisign_verify::{Error, PublicKey, Signature};

/// Public keys, and whether a signature by one of them is required.
#[derive(Clone, Default)]
pub struct TrustedKeys {
    keys: Vec<PublicKey>,
    required: bool,
}

/// Keys that are shared by all who check signatures, and change for all of them at once.
#[derive(Clone, Default)]
pub struct Trust(Arc<ArcSwap<TrustedKeys>>);

/// Why keys are of no use, or a component is not taken by its signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Not a key.
    #[error("public key number {number} is none of minisign's: {cause}; give the last line of its .pub file")]
    Key {
        /// Its place among the keys, from 1.
        number: usize,
        /// What is wrong.
        cause: String,
    },
    /// Nothing could ever be taken.
    #[error("a signature is required and there are no public keys to check one with")]
    NoKeys,
    /// A signature is required and there is none.
    #[error(
        "the component has no signature, and one is required: sign it with `minisign -S -m FILE.wasm`, and keep \
         FILE.wasm.minisig beside it"
    )]
    Unsigned,
    /// Not a signature.
    #[error("the signature is none of minisign's: {0}")]
    Malformed(String),
    /// A signature by nobody who is trusted, or of other bytes.
    #[error("the signature is not one of this component by a trusted key: {0}")]
    Wrong(String),
}

impl TrustedKeys {
    /// Keys as the last line of a `.pub` file of minisign.
    ///
    /// # Errors
    /// Which key is none; that there is no key and a signature is required.
    pub fn new(keys: &[String], required: bool) -> Result<TrustedKeys, SignatureError> {
        if required && keys.is_empty() {
            return Err(SignatureError::NoKeys);
        }
        let read = |(index, key): (usize, &String)| {
            PublicKey::from_base64(key.trim())
                .map_err(|error| SignatureError::Key { number: index + 1, cause: error.to_string() })
        };
        let keys = keys.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(TrustedKeys { keys, required })
    }

    /// Whether signatures are looked for.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether what has none is refused.
    pub fn required(&self) -> bool {
        self.required
    }

    /// Holds a component to its signature. Without any trusted key, everything is taken.
    ///
    /// # Errors
    /// A signature that is wrong, or missing where one is required.
    pub fn check(&self, component: &[u8], signature: Option<&str>) -> Result<(), SignatureError> {
        let Some(text) = signature.filter(|_| !self.is_empty()) else {
            return if self.required { Err(SignatureError::Unsigned) } else { Ok(()) };
        };
        let signature =
            Signature::decode(text).map_err(|error| SignatureError::Malformed(error.to_string()))?;
        let mut refused = Error::UnexpectedKeyId;
        for key in &self.keys {
            match key.verify(component, &signature, false) {
                Ok(()) => return Ok(()),
                // That another key made it says less than what is wrong with it.
                Err(Error::UnexpectedKeyId) => {}
                Err(error) => refused = error,
            }
        }
        Err(SignatureError::Wrong(refused.to_string()))
    }
}

impl Trust {
    /// The keys as they are now.
    pub fn keys(&self) -> Arc<TrustedKeys> {
        self.0.load_full()
    }

    /// From now on these.
    pub fn set(&self, keys: TrustedKeys) {
        self.0.store(Arc::new(keys));
    }
}

impl fmt::Debug for TrustedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedKeys")
            .field("keys", &self.keys.len())
            .field("required", &self.required)
            .finish()
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.keys().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use minisign::KeyPair;

    use super::*;

    fn sign(pair: &KeyPair, bytes: &[u8]) -> String {
        minisign::sign(None, &pair.sk, Cursor::new(bytes), None, None).expect("signed").into_string()
    }

    fn trusted(pairs: &[&KeyPair], required: bool) -> TrustedKeys {
        let keys: Vec<String> = pairs.iter().map(|pair| pair.pk.to_base64()).collect();
        TrustedKeys::new(&keys, required).expect("keys")
    }

    fn pair() -> KeyPair {
        KeyPair::generate_unencrypted_keypair().expect("a key pair")
    }

    #[test]
    fn a_signature_by_any_trusted_key_is_taken() {
        let (a, b) = (pair(), pair());
        let keys = trusted(&[&a, &b], true);
        for signer in [&a, &b] {
            assert_eq!(keys.check(b"code", Some(&sign(signer, b"code"))), Ok(()));
        }
        let strange = keys.check(b"code", Some(&sign(&pair(), b"code")));
        assert!(matches!(strange, Err(SignatureError::Wrong(_))), "{strange:?}");
    }

    #[test]
    fn other_bytes_and_other_text_are_refused_even_where_none_is_required() {
        let a = pair();
        let keys = trusted(&[&a], false);
        assert_eq!(keys.check(b"code", None), Ok(()));
        let tampered = keys.check(b"c0de", Some(&sign(&a, b"code")));
        assert!(matches!(tampered, Err(SignatureError::Wrong(_))), "{tampered:?}");
        let text = sign(&a, b"code");
        let comment = text.replacen("timestamp:", "timestamq:", 1);
        assert_ne!(comment, text);
        assert!(keys.check(b"code", Some(&comment)).is_err(), "the trusted comment is signed, too");
        for wrong in ["", "x", &text[..text.len() / 2]] {
            let refused = keys.check(b"code", Some(wrong));
            assert!(matches!(refused, Err(SignatureError::Malformed(_))), "{wrong}: {refused:?}");
        }
    }

    #[test]
    fn what_is_required_cannot_be_left_out() {
        assert_eq!(trusted(&[&pair()], true).check(b"code", None), Err(SignatureError::Unsigned));
        assert_eq!(TrustedKeys::new(&[], true).err(), Some(SignatureError::NoKeys));
        let key = TrustedKeys::new(&[pair().pk.to_base64(), "RWQ".into()], false);
        assert!(matches!(key, Err(SignatureError::Key { number: 2, .. })), "{key:?}");
        assert_eq!(TrustedKeys::default().check(b"code", Some("whatever")), Ok(()));
    }
}
