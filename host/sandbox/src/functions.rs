//! The machine code of functions that this process has compiled, in memory.
//!
//! Most of a component with an interpreter is the interpreter, which is the same in each build. The key is a digest of a function as
//! the compiler sees it, so a changed function has another key.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use wasmtime::CacheStore;

/// Limit of the stored machine code. Beyond it nothing is added: functions are then compiled each time.
const BYTES_MAX: usize = 256 << 20;

/// Functions by key.
#[derive(Debug, Default)]
pub(super) struct Functions(Mutex<Stored>);

#[derive(Debug, Default)]
struct Stored {
    code: HashMap<Box<[u8]>, Box<[u8]>>,
    bytes: usize,
}

#[cfg(test)]
impl Functions {
    pub(super) fn len(&self) -> usize {
        self.0.lock().expect("never poisoned").code.len()
    }
}

impl CacheStore for Functions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        let stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stored.code.get(key).map(|code| Cow::Owned(code.to_vec()))
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = stored.bytes + key.len() + value.len();
        if bytes > BYTES_MAX {
            return false;
        }
        if stored.code.insert(key.into(), value.into()).is_none() {
            stored.bytes = bytes;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_again_until_the_limit() {
        let functions = Functions::default();
        assert_eq!(functions.get(b"a"), None);
        assert!(functions.insert(b"a", vec![1, 2]));
        assert_eq!(functions.get(b"a").as_deref(), Some(&[1, 2][..]));
        assert!(!functions.insert(b"b", vec![0; BYTES_MAX]));
        assert_eq!(functions.get(b"b"), None);
    }
}
