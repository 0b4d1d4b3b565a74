//! The allocator of a component: a bump allocator over a fixed arena. A component answers one call and is then dropped.
//!
//! Most calls fit into the arena and never grow the memory of the component. Growing it costs the host two system calls that block
//! all of its threads. Requests that do not fit go to the backing allocator. Only the last block of the arena can be freed or resized.
//! That is enough for a buffer that grows while it is built. The memory of all other blocks is freed with the component.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr;

/// Enough for the facts and the answer of nearly every call.
#[cfg(all(target_arch = "wasm32", feature = "heap"))]
const ARENA_BYTES: usize = 256 << 10;

#[cfg(all(target_arch = "wasm32", feature = "heap"))]
#[global_allocator]
static HEAP: Heap<ARENA_BYTES, std::alloc::System> = Heap::over(std::alloc::System);

/// An arena of a fixed size in front of a backing allocator. For one thread only.
struct Heap<const BYTES: usize, Backing> {
    arena: UnsafeCell<Arena<BYTES>>,
    /// The bytes of the arena that are allocated, from its start.
    used: UnsafeCell<usize>,
    backing: Backing,
}

/// The largest alignment of a block in the arena.
const ARENA_ALIGN: usize = align_of::<Arena<0>>();

/// Has the largest usual alignment, so that the first block needs no padding.
#[repr(align(16))]
struct Arena<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize, Backing> Heap<BYTES, Backing> {
    const fn over(backing: Backing) -> Heap<BYTES, Backing> {
        Heap {
            arena: UnsafeCell::new(Arena([0; BYTES])),
            used: UnsafeCell::new(0),
            backing,
        }
    }

    fn start(&self) -> *mut u8 {
        self.arena.get().cast()
    }

    /// The offset of the block in the arena. None if it came from the backing allocator.
    fn offset(&self, block: *mut u8) -> Option<usize> {
        let offset = block.addr().checked_sub(self.start().addr())?;
        (offset < BYTES).then_some(offset)
    }
}

#[expect(
    unsafe_code,
    reason = "the trait for global allocators is unsafe and works on raw pointers"
)]
mod global {
    use super::{ARENA_ALIGN, GlobalAlloc, Heap, Layout, ptr};

    // SAFETY: a component has one thread, because the host refuses components with shared memory.
    #[cfg(target_arch = "wasm32")]
    unsafe impl<const BYTES: usize, Backing> Sync for Heap<BYTES, Backing> {}

    // SAFETY: the blocks of the arena lie between its start and `used`. They are aligned and do not overlap: `alloc` returns memory
    // after `used` and increases `used`, and only the block that ends at `used` can decrease or increase it again. There is one
    // thread and no call is reentrant, so `used` does not change during a call except by that call.
    unsafe impl<const BYTES: usize, Backing: GlobalAlloc> GlobalAlloc for Heap<BYTES, Backing> {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: see above for `used`. The offset is within the arena before it is added to the pointer. The backing allocator
            // gets the layout of the caller.
            unsafe {
                let used = self.used.get();
                // An alignment is a power of two.
                let mask = layout.align().wrapping_sub(1);
                let offset = (*used).wrapping_add(mask) & !mask;
                match offset.checked_add(layout.size()) {
                    Some(end) if end <= BYTES && layout.align() <= ARENA_ALIGN => {
                        *used = end;
                        self.start().add(offset)
                    }
                    _ => self.backing.alloc(layout),
                }
            }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: see above. A block outside of the arena came from the backing allocator.
            unsafe {
                match self.offset(block) {
                    Some(offset) => {
                        let used = self.used.get();
                        if offset + layout.size() == *used {
                            *used = offset;
                        }
                    }
                    None => self.backing.dealloc(block, layout),
                }
            }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: as above. The new block overlaps no block in use. The copied size is the old one, which is smaller than the new
            // one here. The caller guarantees that the new size makes a valid layout.
            unsafe {
                let Some(offset) = self.offset(block) else {
                    return self.backing.realloc(block, layout, size);
                };
                let used = self.used.get();
                let last = offset + layout.size() == *used;
                if last && offset.checked_add(size).is_some_and(|end| end <= BYTES) {
                    *used = offset + size;
                    return block;
                }
                if size <= layout.size() {
                    return block;
                }
                let layout_new = Layout::from_size_align_unchecked(size, layout.align());
                let new = self.alloc(layout_new);
                if !new.is_null() {
                    ptr::copy_nonoverlapping(block, new, layout.size());
                    self.dealloc(block, layout);
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
            // SAFETY: there is one thread, and no call of the allocator runs.
            unsafe { *heap.used.get() }
        }

        #[test]
        fn blocks_are_aligned_and_do_not_overlap_in_the_arena_and_outside_of_it() {
            let heap = Heap::<BYTES, System>::over(System);
            let mut ranges: Vec<(usize, usize)> = Vec::new();
            let mut blocks = Vec::new();
            for (size, align) in [
                (1, 1),
                (8, 8),
                (3, 1),
                (32, 16),
                (100, 4),
                (64, 64),
                (200, 8),
            ] {
                // SAFETY: no layout is empty, and each block is freed below with its layout.
                let block = unsafe { heap.alloc(layout(size, align)) };
                let (from, to) = (block.addr(), block.addr() + size);
                assert_eq!(from % align, 0);
                assert!(
                    ranges
                        .iter()
                        .all(|(start, end)| to <= *start || *end <= from)
                );
                ranges.push((from, to));
                blocks.push((block, layout(size, align)));
            }
            let inside = |(block, _): &&(*mut u8, Layout)| heap.offset(*block).is_some();
            assert_eq!(
                blocks.iter().filter(inside).count(),
                5,
                "the blocks that fit"
            );
            for (block, layout) in blocks.into_iter().rev() {
                // SAFETY: the block was allocated above with this layout.
                unsafe { heap.dealloc(block, layout) };
            }
        }

        #[test]
        fn the_last_block_grows_in_place_and_leaves_the_arena_when_it_does_not_fit() {
            let heap = Heap::<BYTES, System>::over(System);
            // SAFETY: each block is used within its size and with its layout.
            unsafe {
                let block = heap.alloc(layout(16, 8));
                block.write_bytes(7, 16);
                let grown = heap.realloc(block, layout(16, 8), 64);
                assert_eq!((grown, used(&heap)), (block, 64));
                let shrunk = heap.realloc(grown, layout(64, 8), 24);
                assert_eq!((shrunk, used(&heap)), (block, 24));
                let other = heap.alloc(layout(8, 8));
                let moved = heap.realloc(shrunk, layout(24, 8), 32);
                assert_eq!(heap.offset(moved), Some(32));
                let outside = heap.realloc(moved, layout(32, 8), 10_000);
                assert!(heap.offset(outside).is_none());
                assert_eq!(std::slice::from_raw_parts(outside, 16), [7; 16]);
                assert_eq!(used(&heap), 32, "the block that moved was the last one");
                let larger = heap.realloc(outside, layout(10_000, 8), 20_000);
                heap.dealloc(larger, layout(20_000, 8));
                heap.dealloc(other, layout(8, 8));
                assert_eq!(used(&heap), 24, "the gap before it is not reused");
            }
        }

        #[test]
        fn sizes_near_the_end_of_the_address_space_fail_without_overflow() {
            let heap = Heap::<BYTES, System>::over(System);
            // SAFETY: a null pointer is not used.
            unsafe {
                let huge = usize::MAX / 2 - 64;
                assert!(heap.alloc(layout(huge, 8)).is_null());
                let block = heap.alloc(layout(8, 8));
                assert!(heap.realloc(block, layout(8, 8), huge).is_null());
                assert_eq!(heap.offset(block), Some(0));
            }
        }
    }
}
