//! What the standard library does not offer for tables that are read at random, and for loops over many values.

/// Ask for the cache line of an element, which is needed soon; does nothing beyond the end of the slice.
#[inline(always)]
#[allow(unsafe_code, clippy::inline_always)]
pub fn prefetch<T>(slice: &[T], place: usize) {
    #[cfg(target_arch = "x86_64")]
    if place < slice.len() {
        // SAFETY: the address is inside the slice, and a prefetch never faults.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch(slice.as_ptr().add(place).cast(), _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, place);
}

/// What `SplitMix64` adds for each new value: 2⁶⁴ divided by the golden ratio, made odd.
pub const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Return what `work` returns, compiled for processors with AVX2 and POPCNT if this is one: for loops over many values.
///
/// What is to be compiled so has to be inlined: mark the closure and what it calls as `#[inline(always)]`.
#[inline(always)]
#[allow(unsafe_code, clippy::inline_always)]
pub fn vectorised<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("popcnt") {
        #[target_feature(enable = "avx2,popcnt")]
        unsafe fn by_avx2<T>(work: impl FnOnce() -> T) -> T {
            work()
        }
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { by_avx2(work) };
    }
    work()
}

/// Return the finaliser of `SplitMix64` of a value: a bijection that mixes 64 bits.
///
/// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
#[inline]
pub fn mix64(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
