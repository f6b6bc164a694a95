//! The processor's registers that kernels use, detected at run time.

use crate::runs::Axis;

/// A register, with the instructions that rearrange its bytes. A value exists only where the machine
/// has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with F, BW, VBMI and VBMI2; POPCNT.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Register {
    /// The widest that this machine has.
    pub(super) fn widest() -> Option<Register> {
        Register::detected().last()
    }

    /// All that this machine has, from the narrowest to the widest.
    pub(super) fn detected() -> impl Iterator<Item = Register> {
        #[cfg(target_arch = "x86_64")]
        let found = [
            is_x86_feature_detected!("ssse3").then_some(Register::Ssse3),
            is_x86_feature_detected!("avx2").then_some(Register::Avx2),
            (is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("popcnt"))
            .then_some(Register::Avx512),
        ];
        #[cfg(target_arch = "aarch64")]
        let found = [std::arch::is_aarch64_feature_detected!("neon").then_some(Register::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let found: [Option<Register>; 0] = [];
        found.into_iter().flatten()
    }

    /// The instructions, as Linux calls them.
    pub(super) fn instructions(self) -> &'static [&'static str] {
        match self {
            #[cfg(target_arch = "aarch64")]
            Register::Neon => &["neon"],
            #[cfg(target_arch = "x86_64")]
            Register::Ssse3 => &["ssse3"],
            #[cfg(target_arch = "x86_64")]
            Register::Avx2 => &["avx2"],
            #[cfg(target_arch = "x86_64")]
            Register::Avx512 => &["avx512f", "avx512bw", "avx512vbmi", "avx512_vbmi2", "popcnt"],
        }
    }

    /// Bytes a register.
    pub(super) fn width(self) -> usize {
        match self {
            #[cfg(target_arch = "aarch64")]
            Register::Neon => 16,
            #[cfg(target_arch = "x86_64")]
            Register::Ssse3 => 16,
            #[cfg(target_arch = "x86_64")]
            Register::Avx2 => 32,
            #[cfg(target_arch = "x86_64")]
            Register::Avx512 => 64,
        }
    }
}

/// How many units along an axis a register of `width` bytes collects from one load: each spans `span`
/// bytes in the input, and becomes `bytes`. 0 where one is too long.
pub(super) fn units(width: u64, along: Axis, span: u64, bytes: u64) -> u64 {
    let Some(room) = width.checked_sub(span) else { return 0 };
    let loaded = room.checked_div(along.stride.unsigned_abs()).map_or(width, |more| more + 1);
    loaded.min(width / bytes.max(1)).min(along.len)
}
