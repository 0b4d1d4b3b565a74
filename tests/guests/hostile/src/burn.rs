//! Behaviours that never return, or use all resources first.

use std::hint::black_box;

/// Runs a behaviour that does not return, or should not.
pub(crate) fn misbehave(behaviour: &str) {
    match behaviour {
        "spin" => spin(),
        "crawl" => crawl(),
        "recurse" => {
            black_box(recurse(0));
        }
        "allocate" => allocate(),
        "grow" => grow(),
        "hoard" => hoard(),
        "touch" => touch(),
        "fill" => fill(),
        "backtrack" => {
            black_box(matches(&[b'a'; 64]));
        }
        "nested" => {
            black_box(depth(&mut vec![b'['; 1 << 20].into_iter()));
        }
        "trap" => a_function_that_traps(),
        _ => {}
    }
}

fn spin() {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

/// Never ends, with instructions that take long for their fuel.
fn crawl() {
    let mut number = 2.0_f64;
    while number > 0.0 {
        number = ((number + 1.0).sqrt() / 1.000_1).sqrt() / 0.999_9;
    }
    black_box(number);
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "the host must survive it")]
fn recurse(depth: u64) -> u64 {
    // Small frames, so that the limit of the host is reached before the guest's own stack in memory ends.
    black_box(depth) ^ recurse(depth + 1)
}

fn allocate() {
    let mut hoard = Vec::new();
    loop {
        hoard.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Requests more memory than permitted, for ever: cheap in instructions, costly in time.
fn grow() {
    #[cfg(target_arch = "wasm32")]
    loop {
        black_box(core::arch::wasm32::memory_grow::<0>(60_000));
    }
}

#[inline(never)]
fn a_function_that_traps() {
    panic!("the input asked for it");
}

/// Grows the memory by one page at a time until the host refuses, and goes on.
fn hoard() {
    #[cfg(target_arch = "wasm32")]
    while core::arch::wasm32::memory_grow::<0>(16) != usize::MAX {}
}

/// Writes to nearly all of the permitted memory.
fn touch() {
    let mut pages = vec![0_u8; 40 << 20];
    for page in pages.chunks_mut(4096) {
        page[0] = 1;
    }
    black_box(pages);
}

/// Never ends, with single instructions that take milliseconds.
fn fill() {
    let mut pages = vec![0_u8; 16 << 20];
    for value in (0..=u8::MAX).cycle() {
        black_box(&mut pages).fill(value);
    }
}

/// Whether a text matches `^(a+)+b$`, by backtracking: exponential in its length.
#[inline(never)]
fn matches(text: &[u8]) -> bool {
    let run = text.iter().take_while(|&&byte| byte == b'a').count();
    (1..=run).rev().any(|taken| {
        let rest = black_box(&text[taken..]);
        rest == b"b" || matches(rest)
    })
}

/// The depth of nested brackets, by a recursive parser.
#[inline(never)]
fn depth(brackets: &mut impl Iterator<Item = u8>) -> u64 {
    match brackets.next() {
        Some(b'[') => black_box(1) + depth(brackets),
        _ => 0,
    }
}

/// The bits of a NaN from operations whose result may depend on the machine.
#[expect(clippy::eq_op, reason = "what is no number is made by just that")]
pub(crate) fn nan_bits() -> Vec<String> {
    let (zero, endless) = (black_box(0.0_f64), black_box(f64::INFINITY));
    let payload = black_box(f64::from_bits(0x7ff8_dead_beef_0001));
    [
        zero / zero,
        endless - endless,
        (zero - 1.0).sqrt(),
        payload + 1.0,
        payload * zero,
    ]
    .map(|number| format!("{:016x}", number.to_bits()))
    .into()
}
