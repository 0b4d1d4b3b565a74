//! Memory of a component that answers one question and is dropped.
//!
//! A component begins with room of its own, and memory is taken from there one piece after the other: most answers
//! never ask the host for more, which would cost it two system calls that all of its threads wait for. What does not fit
//! comes from the allocator behind it. Pieces in the room are given back only from its end; that is enough
//! for what grows while it is built, and what stays behind goes with the instance.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr;

/// What nearly every question needs, its facts and the answer together.
#[cfg(all(target_arch = "wasm32", feature = "heap"))]
const ROOM_BYTES: usize = 256 << 10;

#[cfg(all(target_arch = "wasm32", feature = "heap"))]
#[global_allocator]
static HEAP: Heap<ROOM_BYTES, std::alloc::System> = Heap::before(std::alloc::System);

/// Room of a fixed size before another allocator. For one thread only.
struct Heap<const BYTES: usize, Behind> {
    room: UnsafeCell<Room<BYTES>>,
    /// How much of the room is handed out.
    used: UnsafeCell<usize>,
    behind: Behind,
}

/// Aligned as every piece may be without losing a gap before the first.
#[repr(align(16))]
struct Room<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize, Behind> Heap<BYTES, Behind> {
    const fn before(behind: Behind) -> Heap<BYTES, Behind> {
        Heap {
            room: UnsafeCell::new(Room([0; BYTES])),
            used: UnsafeCell::new(0),
            behind,
        }
    }

    fn start(&self) -> *mut u8 {
        self.room.get().cast()
    }

    /// Where in the room this piece begins, if it is in there.
    fn place(&self, piece: *mut u8) -> Option<usize> {
        let place = piece.addr().checked_sub(self.start().addr())?;
        (place < BYTES).then_some(place)
    }
}

#[expect(
    unsafe_code,
    reason = "an allocator hands out memory that nobody else looks after"
)]
mod handing_out {
    use super::{GlobalAlloc, Heap, Layout, ptr};

    // SAFETY: components have one thread: the contract's host refuses those with shared memory.
    #[cfg(target_arch = "wasm32")]
    unsafe impl<const BYTES: usize, Behind> Sync for Heap<BYTES, Behind> {}

    // SAFETY: pieces lie in the room, between its start and `used`, aligned and without overlap: `alloc` hands out
    // what lies behind `used` and moves it, and only the piece that ends at `used` moves it back or on.
    // No call of these functions begins while another runs, so that nobody sees `used` change.
    unsafe impl<const BYTES: usize, Behind: GlobalAlloc> GlobalAlloc for Heap<BYTES, Behind> {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: see above for `used`; the place is in the room before a pointer is made of it; the
            // allocator behind is asked for what we are asked for.
            unsafe {
                let used = self.used.get();
                let start = self.start();
                let gap = start.wrapping_add(*used).align_offset(layout.align());
                let place = (*used).checked_add(gap);
                let end = place.and_then(|place| place.checked_add(layout.size()));
                match (place, end) {
                    (Some(place), Some(end)) if end <= BYTES => {
                        *used = end;
                        start.add(place)
                    }
                    _ => self.behind.alloc(layout),
                }
            }
        }

        unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
            // SAFETY: see above; what is not in the room came from behind.
            unsafe {
                match self.place(piece) {
                    Some(place) => {
                        let used = self.used.get();
                        if place + layout.size() == *used {
                            *used = place;
                        }
                    }
                    None => self.behind.dealloc(piece, layout),
                }
            }
        }

        unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: as above; the new piece is none of those that are in use, so the two do not overlap, and the
            // shorter of the two sizes is within both. The caller promises that the new size makes a layout.
            unsafe {
                let Some(place) = self.place(piece) else {
                    return self.behind.realloc(piece, layout, size);
                };
                let used = self.used.get();
                let last = place + layout.size() == *used;
                if last && place.checked_add(size).is_some_and(|end| end <= BYTES) {
                    *used = place + size;
                    return piece;
                }
                if size <= layout.size() {
                    return piece;
                }
                let layout_new = Layout::from_size_align_unchecked(size, layout.align());
                let new = self.alloc(layout_new);
                if !new.is_null() {
                    ptr::copy_nonoverlapping(piece, new, layout.size());
                    self.dealloc(piece, layout);
                }
                new
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use std::alloc::System;

        use super::*;

        const BYTES: usize = 256;

        fn layout(size: usize, align: usize) -> Layout {
            Layout::from_size_align(size, align).unwrap()
        }

        fn used(heap: &Heap<BYTES, System>) -> usize {
            // SAFETY: one thread, and no call of the allocator under way.
            unsafe { *heap.used.get() }
        }

        #[test]
        fn pieces_are_aligned_and_apart_in_the_room_and_behind_it() {
            let heap = Heap::<BYTES, System>::before(System);
            let mut taken: Vec<(usize, usize)> = Vec::new();
            let mut pieces = Vec::new();
            for (size, align) in [
                (1, 1),
                (8, 8),
                (3, 1),
                (32, 16),
                (100, 4),
                (64, 64),
                (200, 8),
            ] {
                // SAFETY: no layout is empty; given back below with the same layout.
                let piece = unsafe { heap.alloc(layout(size, align)) };
                let (from, to) = (piece.addr(), piece.addr() + size);
                assert_eq!(from % align, 0);
                assert!(
                    taken
                        .iter()
                        .all(|(start, end)| to <= *start || *end <= from)
                );
                taken.push((from, to));
                pieces.push((piece, layout(size, align)));
            }
            let inside = |(piece, _): &&(*mut u8, Layout)| heap.place(*piece).is_some();
            assert_eq!(pieces.iter().filter(inside).count(), 5, "those that fit");
            for (piece, layout) in pieces.into_iter().rev() {
                // SAFETY: made above with this layout.
                unsafe { heap.dealloc(piece, layout) };
            }
        }

        #[test]
        fn what_grows_at_the_end_stays_and_what_outgrows_the_room_moves() {
            let heap = Heap::<BYTES, System>::before(System);
            // SAFETY: each piece is used within its size, and given its layout.
            unsafe {
                let piece = heap.alloc(layout(16, 8));
                piece.write_bytes(7, 16);
                let grown = heap.realloc(piece, layout(16, 8), 64);
                assert_eq!((grown, used(&heap)), (piece, 64));
                let shrunk = heap.realloc(grown, layout(64, 8), 24);
                assert_eq!((shrunk, used(&heap)), (piece, 24));
                let other = heap.alloc(layout(8, 8));
                let moved = heap.realloc(shrunk, layout(24, 8), 32);
                assert_eq!(heap.place(moved), Some(32));
                let away = heap.realloc(moved, layout(32, 8), 10_000);
                assert!(heap.place(away).is_none());
                assert_eq!(std::slice::from_raw_parts(away, 16), [7; 16]);
                assert_eq!(used(&heap), 32, "what has moved was at the end");
                let back = heap.realloc(away, layout(10_000, 8), 20_000);
                heap.dealloc(back, layout(20_000, 8));
                heap.dealloc(other, layout(8, 8));
                assert_eq!(used(&heap), 24, "the hole before it stays");
            }
        }

        #[test]
        fn sizes_around_the_end_of_addresses_are_refused_and_not_wrapped() {
            let heap = Heap::<BYTES, System>::before(System);
            // SAFETY: a piece that is refused is not used.
            unsafe {
                let huge = usize::MAX / 2 - 64;
                assert!(heap.alloc(layout(huge, 8)).is_null());
                let piece = heap.alloc(layout(8, 8));
                assert!(heap.realloc(piece, layout(8, 8), huge).is_null());
                assert_eq!(heap.place(piece), Some(0));
            }
        }
    }
}
