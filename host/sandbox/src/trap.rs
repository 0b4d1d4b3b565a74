//! How a guest trapped, for its author. Names of functions are texts of the guest: they are escaped and cut.

use std::fmt::{self, Write as _};

use wasmtime::WasmBacktrace;
use wrkflw_core::text::tame;

const MESSAGE_CHARS_MAX: usize = 300;
const FRAME_CHARS_MAX: usize = 120;
/// Longer names are shown as they are. A short Rust name may decode to a very long one, because it can refer to its own parts.
const MANGLED_BYTES_MAX: usize = 1000;
/// Prefixes of the functions of the Rust runtime. These only report what the functions below them did.
const RUNTIME: [&str; 7] = [
    "core::", "std::", "alloc::", "__rustc", "<core::", "<std::", "<alloc::",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trap {
    pub message: String,
    /// Names of functions, innermost first.
    pub frames: Vec<String>,
}

impl Trap {
    pub(super) fn of(kind: wasmtime::Trap, error: &wasmtime::Error) -> Trap {
        let backtrace = error.downcast_ref::<WasmBacktrace>();
        let frames = backtrace.map_or(&[][..], WasmBacktrace::frames).iter();
        let named = frames.map(|frame| {
            let name = plain(frame.func_name().unwrap_or("?"));
            match frame.module_offset() {
                Some(offset) => format!("{name} at {offset:#x}"),
                None => name,
            }
        });
        Trap {
            message: tame(&kind.to_string(), MESSAGE_CHARS_MAX),
            frames: named.collect(),
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let is_runtime = |frame: &&String| RUNTIME.iter().any(|path| frame.starts_with(path));
        let mut authors = self.frames.iter().skip_while(is_runtime);
        match authors.next().or(self.frames.first()) {
            Some(frame) => write!(f, " in {frame}"),
            None => Ok(()),
        }
    }
}

/// The name as in the source, if the Rust compiler has encoded it.
fn plain(name: &str) -> String {
    let encoded = (name.len() <= MANGLED_BYTES_MAX).then(|| rustc_demangle::try_demangle(name));
    let Some(Ok(decoded)) = encoded else {
        return tame(name, FRAME_CHARS_MAX);
    };
    let mut text = Bounded(String::new());
    // The write ends early when the text is full.
    let _ = write!(text, "{decoded:#}");
    tame(&text.0, FRAME_CHARS_MAX)
}

/// A text that accepts no more once it is longer than the part that is shown.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.chars().count() > FRAME_CHARS_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trap(frames: &[&str]) -> String {
        let frames = frames.iter().map(|name| plain(name)).collect();
        let message = "unreachable".to_owned();
        Trap { message, frames }.to_string()
    }

    #[test]
    fn the_innermost_function_that_is_not_of_the_runtime_is_shown() {
        let rust = [
            "_RNvCsfLfy6EI15iL_7___rustc12___rust_abort",
            "_RNvNtCs1CnJMzkBaXa_4core9panicking5panic",
            "_RNvCs4fqI2P2rA04_2ev4boom",
            "transition",
        ];
        assert_eq!(trap(&rust), "unreachable in ev::boom");
        assert_eq!(
            trap(&["abort", "wf_on", "describe"]),
            "unreachable in abort"
        );
        assert_eq!(trap(&rust[..1]), "unreachable in __rustc::__rust_abort");
        assert_eq!(trap(&[]), "unreachable");
    }

    /// `(A, A)` of `(B, B)` of … by references to itself: 40 levels would be a terabyte.
    #[test]
    fn a_name_that_says_far_more_than_its_length_is_cut() {
        let mut name = "_RINvC1a1b".to_owned();
        let mut place = name.len() - 2;
        name.push_str("ThhE");
        for _ in 0..40 {
            let reference = format!("B{}_", base_62(place));
            place = name.len() - 2;
            name = format!("{name}T{reference}{reference}E");
        }
        name.push('E');
        let shown = plain(&name);
        assert!(shown.starts_with("a::b::<"), "{shown}");
        assert!(shown.chars().count() <= FRAME_CHARS_MAX + 1, "{shown}");
        assert_eq!(
            plain(&"n".repeat(5000)).chars().count(),
            tame(&"n".repeat(5000), FRAME_CHARS_MAX).chars().count()
        );
    }

    /// How a reference to a place is written: zero is nothing, one is `0`.
    fn base_62(place: usize) -> String {
        const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let (mut left, mut digits) = (place - 1, Vec::new());
        loop {
            digits.insert(0, DIGITS[left % 62]);
            left /= 62;
            if left == 0 {
                return String::from_utf8_lossy(&digits).into_owned();
            }
        }
    }
}
