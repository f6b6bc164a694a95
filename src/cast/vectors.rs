//! Loops over numbers, compiled for the widest registers of the processor.
//!
//! The program is compiled for all processors of an architecture, whose vectors are short. A function declared
//! in [`vectorized`] is compiled again for longer vectors, together with the functions that are inlined in it.

/// Declare a function with a version for each width of registers.
macro_rules! vectorized {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$param:ident: $bound:ident>)? ($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code)]
        $vis fn $name $(<$param: $bound>)? ($($arg: $type),*) $(-> $out)? {
            #[inline(always)]
            fn plain $(<$param: $bound>)? ($($arg: $type),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512 $(<$param: $bound>)? ($($arg: $type),*) $(-> $out)? {
                    plain $(::<$param>)? ($($arg),*)
                }

                #[target_feature(enable = "avx2")]
                fn avx2 $(<$param: $bound>)? ($($arg: $type),*) $(-> $out)? {
                    plain $(::<$param>)? ($($arg),*)
                }

                let has_avx512 = is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl");
                if has_avx512 {
                    // SAFETY: the processor has these instructions.
                    return unsafe { avx512 $(::<$param>)? ($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has these instructions.
                    return unsafe { avx2 $(::<$param>)? ($($arg),*) };
                }
            }
            plain $(::<$param>)? ($($arg),*)
        }
    };
}

pub(crate) use vectorized;
