//! A bounded cache of values compiled from JSON texts, such as the forms of tasks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::json::Json;

/// A cache whose keys are JSON texts. When it is full, the oldest entry is removed.
#[derive(Debug)]
pub struct JsonCache<T> {
    parts: Mutex<Parts<T>>,
    count_max: usize,
    bytes_max: usize,
    /// The bytes of a value besides its text.
    weigh: fn(&T) -> usize,
}

#[derive(Debug)]
struct Parts<T> {
    values: HashMap<Arc<Json>, T>,
    /// The texts with the bytes of each entry.
    order: VecDeque<(Arc<Json>, usize)>,
    /// The bytes of all entries.
    bytes: usize,
}

impl<T: Clone> JsonCache<T> {
    /// A cache of at most `count_max` values, which have at most `bytes_max` bytes together with their texts.
    pub fn new(count_max: usize, bytes_max: usize, weigh: fn(&T) -> usize) -> JsonCache<T> {
        JsonCache {
            parts: Mutex::new(Parts {
                values: HashMap::new(),
                order: VecDeque::new(),
                bytes: 0,
            }),
            count_max,
            bytes_max,
            weigh,
        }
    }

    /// The cached value of the text, if there is one.
    pub fn get(&self, text: &Json) -> Option<T> {
        self.parts().values.get(text).cloned()
    }

    /// The cached value of the text, or a new one, which is then cached. Errors are not cached.
    pub(crate) fn get_or_make<E>(
        &self,
        text: &Json,
        make: impl FnOnce(&Json) -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(known) = self.get(text) {
            return Ok(known);
        }
        // The lock is not held while `make` runs. Two threads may make the same value at once.
        let fresh = make(text)?;
        self.keep(text, fresh.clone());
        Ok(fresh)
    }

    /// Caches a value.
    fn keep(&self, text: &Json, value: T) {
        let key = Arc::new(text.clone());
        let bytes = key.as_str().len() + (self.weigh)(&value);
        let mut parts = self.parts();
        if parts.values.insert(Arc::clone(&key), value).is_some() {
            return;
        }
        parts.bytes += bytes;
        parts.order.push_back((key, bytes));
        while parts.order.len() > self.count_max || parts.bytes > self.bytes_max {
            let Some((first, bytes)) = parts.order.pop_front() else {
                return;
            };
            parts.values.remove(&first);
            parts.bytes -= bytes;
        }
    }

    fn parts(&self) -> MutexGuard<'_, Parts<T>> {
        self.parts.lock().expect("nobody panics while holding it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: usize) -> Json {
        Json::of(&number)
    }

    #[test]
    fn what_is_kept_is_made_once_and_the_first_goes() {
        let kept = JsonCache::new(2, 1_000, |_| 0);
        let is_made = |number: usize| {
            let mut was_called = false;
            let result = kept.get_or_make(&text(number), |_| {
                was_called = true;
                Ok::<_, ()>(number)
            });
            assert_eq!(result, Ok(number));
            was_called
        };
        assert!(is_made(1) && is_made(2));
        assert!(!is_made(1) && !is_made(2));
        assert!(is_made(3), "which takes the place of the first");
        assert!(is_made(1));
        assert!(!is_made(3));
    }

    #[test]
    fn texts_are_bounded_together_and_failures_are_not_kept() {
        let kept = JsonCache::new(100, 3, |_| 0);
        for number in [11, 22] {
            kept.keep(&text(number), number);
        }
        assert_eq!((kept.get(&text(11)), kept.get(&text(22))), (None, Some(22)));
        assert_eq!(kept.get_or_make(&text(5), |_| Err(())), Err(()));
        assert_eq!(kept.get(&text(5)), None);
    }

    #[test]
    fn what_values_weigh_is_bounded_with_their_texts() {
        let kept = JsonCache::new(100, 25, |value| *value);
        for number in [11, 10, 12] {
            kept.keep(&text(number), number);
        }
        // Of 13, 12 and 14 bytes.
        assert_eq!((kept.get(&text(11)), kept.get(&text(10))), (None, None));
        assert_eq!(kept.get(&text(12)), Some(12));
        kept.keep(&text(99), 99);
        assert_eq!((kept.get(&text(12)), kept.get(&text(99))), (None, None));
        assert_eq!(kept.parts().bytes, 0);
    }
}
