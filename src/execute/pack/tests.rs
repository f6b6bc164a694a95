use proptest::prelude::*;

use super::*;
use crate::runs::byte_bounds;

/// Axes whose runs lie anywhere, overlapping or not, and a buffer that just holds their reach.
fn case() -> impl Strategy<Value = (Vec<Axis>, u64)> {
    let axis = (1u64..40, prop_oneof![4 => -40i64..40, 1 => -700i64..700])
        .prop_map(|(len, stride)| Axis { len, stride });
    let run = prop_oneof![Just(1u64), Just(2), Just(4), Just(8), Just(16), 1u64..300];
    (prop::collection::vec(axis, 0..4), run)
        .prop_filter("small", |(axes, _)| axes.iter().map(|axis| axis.len).product::<u64>() < 4000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_kernel_does_what_the_plain_one_does((axes, run) in case()) {
        let span = byte_bounds(&axes, run);
        let input: Vec<u8> =
            (0..span.end - span.start).map(|at| (at * 7 + at / 256) as u8).collect();
        let bytes = axes.iter().map(|axis| axis.len).product::<u64>() * run;
        let (mut plain, mut fast) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        pack_plainly(&axes, run, &input, -span.start as usize, &mut plain);
        pack(&axes, run, &input, -span.start as usize, &mut fast);
        prop_assert_eq!(plain, fast);
    }

    #[test]
    fn swapping_twice_changes_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for width in [1, 2, 4, 8, 3, 16] {
            let whole = bytes.len() / width * width;
            let mut swapped = bytes[..whole].to_vec();
            swap_bytes(&mut swapped, width);
            if let Some((first, original)) = swapped.chunks(width).zip(bytes.chunks(width)).next() {
                prop_assert!(first.iter().eq(original.iter().rev()));
            }
            swap_bytes(&mut swapped, width);
            prop_assert_eq!(&swapped, &bytes[..whole]);
        }
    }
}
