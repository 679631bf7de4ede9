//! The search of the module `learned` in a mapped offset index, by vector instructions: 16 keys in memory,
//! and then eight slots, are each compared by one instruction. A look-up takes half the time of the search
//! without them.
//!
//! Only the usual look-ups are answered. [`Model::place`](super::learned::Model::place) and
//! [`last_of_group`](super::learned::last_of_group), which are the same search without vector instructions,
//! answer the others, and all look-ups on a processor that does not have the instructions.

#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;

/// Proof that the processor has the instructions, which no processor of this architecture has.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Debug, Clone, Copy)]
pub(super) enum Avx512 {}

#[cfg(not(target_arch = "x86_64"))]
impl Avx512 {
    /// `None`.
    pub(super) fn detect() -> Option<Self> {
        None
    }

    /// Never called.
    pub(super) fn last_slot<'a>(
        self,
        _: &super::sampled_keys::SampledKeys<u32>,
        _: &'a [[[u8; 8]; super::learned::GROUP]],
        _: u32,
        _: i64,
    ) -> Option<&'a [u8; 8]> {
        match self {}
    }
}
