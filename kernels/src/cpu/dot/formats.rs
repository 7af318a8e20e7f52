//! The codings as types, so that a kernel is compiled for each.

use crate::ggml::{Coding, Store, Zero};

/// A coding known to the compiler.
pub(in crate::cpu) trait Format {
    const CODING: Coding;
}

macro_rules! formats {
    ($($name:ident: $store:ident, $group:literal, $zero:expr;)*) => {
        $(struct $name;
        impl Format for $name {
            const CODING: Coding = Coding { store: Store::$store, group: $group, zero: $zero };
        })*

        /// What is done with the type that a coding has here.
        pub(in crate::cpu) trait Visit {
            fn visit<F: Format>(self);
        }

        /// Calls `visitor` with the type of `coding`; gives it back where there is none.
        pub(in crate::cpu) fn with_format<V: Visit>(coding: Coding, visitor: V) -> Result<(), V> {
            match coding {
                $(c if c == $name::CODING => visitor.visit::<$name>(),)*
                _ => return Err(visitor),
            }
            Ok(())
        }
    };
}

formats! {
    Nibble32: Nibble, 32, Zero::Stored;
    Nibble32Less8: Nibble, 32, Zero::Offset(8);
    Nibble16: Nibble, 16, Zero::Stored;
    Nibble16Less4: Nibble, 16, Zero::Offset(4);
    Five32: Five, 32, Zero::Stored;
    Five32Less16: Five, 32, Zero::Offset(16);
    Six16Less32: Six, 16, Zero::Offset(32);
    Signed32: Signed, 32, Zero::Offset(0);
}
