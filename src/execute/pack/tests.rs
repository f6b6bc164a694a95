use proptest::prelude::*;

use super::compress::compress_with;
use super::*;
use crate::runs::{byte_bounds, dense_bytes};

/// Every choice of register: none, as on every machine, and each register of this machine.
fn registers() -> Vec<Option<Register>> {
    std::iter::once(None).chain(Register::detected().map(Some)).collect()
}

/// The results of a kernel and of the reference; the buffer is just as long as the byte bounds.
fn packed(axes: &[Axis], run: u64, kernel: impl FnOnce(&[u8], usize, &mut [u8])) -> [Vec<u8>; 2] {
    let bounds = byte_bounds(axes, run);
    let input: Vec<u8> =
        (0..bounds.end - bounds.start).map(|at| (at * 7 + at / 256) as u8).collect();
    let bytes = dense_bytes(axes, run) as usize;
    let mut plain = vec![0; bytes];
    let mut fast = vec![0; bytes];
    let first = -bounds.start as usize;
    pack_plainly(axes, run, &input, first, &mut plain);
    kernel(&input, first, &mut fast);
    [plain, fast]
}

fn axis(len: u64, stride: i64) -> Axis {
    Axis { len, stride }
}

#[test]
fn the_reference_copies_run_by_run() {
    let mut out = [0; 12];
    pack_plainly(&[axis(2, 5), axis(3, -2)], 2, b"0123456789abcdef", 4, &mut out);
    assert_eq!(&out, b"4523019a7856");
}

/// Axes whose runs lie anywhere, overlapping or not.
fn case() -> impl Strategy<Value = (Vec<Axis>, u64)> {
    let axis = (1u64..40, prop_oneof![4 => -40i64..40, 1 => -700i64..700])
        .prop_map(|(len, stride)| Axis { len, stride });
    let run = prop_oneof![Just(1u64), Just(2), Just(4), Just(8), Just(16), 1u64..300];
    (prop::collection::vec(axis, 0..4), run)
        .prop_filter("small", |(axes, _)| dense_bytes(axes, 1) < 4000)
}

/// Axes whose runs each register can collect: rows of short runs close together.
fn shuffled() -> impl Strategy<Value = (Vec<Axis>, u64)> {
    let stride = (1i64..7, any::<bool>());
    let rows = (1u64..5, -300i64..300);
    (1u64..5, 2u64..90, stride, prop::option::of((2u64..5, any::<bool>())), rows).prop_map(
        |(run, len, (gap, backwards), channels, rows)| {
            let signed = |stride: i64, backwards| if backwards { -stride } else { stride };
            let mut axes = vec![];
            let mut pixel = run as i64;
            if let Some((channels, backwards)) = channels.filter(|_| run == 1) {
                axes.push(axis(channels, signed(pixel, backwards)));
                pixel *= channels as i64;
            }
            axes.insert(0, axis(len, signed(pixel + gap - 1, backwards)));
            axes.insert(0, axis(rows.0, rows.1));
            (axes, run)
        },
    )
}

/// The number of cases of a test: `usual`, or `PROPTEST_CASES`.
fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(asked.unwrap_or(usual))
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn every_kernel_does_what_the_plain_one_does((axes, run) in case()) {
        for register in registers() {
            let [plain, fast] = packed(&axes, run, |input, first, out| {
                pack_with(register, &axes, run, input, first, out);
            });
            prop_assert_eq!(plain, fast, "{:?}", register);
        }
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

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn each_register_shuffles_short_runs((axes, run) in shuffled()) {
        for register in registers().into_iter().flatten() {
            prop_assert!(Shuffle::choose(register, &axes, run).is_some(), "{:?}", register);
            let [plain, fast] = packed(&axes, run, |input, first, out| {
                pack_with(Some(register), &axes, run, input, first, out);
            });
            prop_assert_eq!(plain, fast, "{:?}", register);
        }
    }

    /// Masks with stretches, and with less room than items selected.
    #[test]
    fn items_that_a_mask_keeps_are_those_of_a_loop(
        (len, percent, stretch, seed) in
            (0u64..1000, 0u64..101, prop_oneof![Just(1u64), 2u64..300], any::<u64>()),
        (size, room) in (
            prop::sample::select(vec![1usize, 2, 4, 8, 16]),
            prop_oneof![Just(1000usize), 0usize..1000],
        ),
    ) {
        let random = |at: u64| at.wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let keeps = |at: u64| random(at / stretch) % 100 < percent;
        // any byte except 0 is true
        let truth = if seed % 2 == 0 { 1 } else { 0x80 };
        let mask: Vec<u8> = (0..len).map(|at| u8::from(keeps(at)) * truth).collect();
        let input: Vec<u8> = (0..len * size as u64).map(|at| random(at) as u8).collect();
        let items = input.chunks_exact(size).zip(&mask);
        let selected: Vec<u8> =
            items.filter(|&(_, &byte)| byte != 0).flat_map(|(item, _)| item).copied().collect();
        for register in registers() {
            let mut out = vec![0; room * size];
            let bytes = compress_with(register, &mask, size, &input, &mut out);
            prop_assert_eq!(bytes, selected.len().min(out.len()), "{:?}", register);
            prop_assert_eq!(&out[..bytes], &selected[..bytes], "{:?}", register);
        }
    }

    /// Squares of each item size and their rests, with axes before and between, and stretches of two
    /// axes.
    #[test]
    fn matrices_of_each_item_size_are_transposed(
        run in prop::sample::select(vec![1u64, 2, 3, 4, 6, 8, 12, 16, 24, 32]),
        (along, across) in prop_oneof![(1u64..140, 2u64..150), (1u64..20, 2u64..20)], (step, channels) in (1i64..4, 1u64..4),
        (before, between) in (1u64..3, 1u64..3), backwards in any::<(bool, bool, bool)>(),
        last in any::<bool>(),
    ) {
        let signed = |stride: i64, backwards| if backwards { -stride } else { stride };
        let pixel = run as i64 * channels as i64 * step;
        let row = pixel * along as i64 + 17;
        let plane = row * across as i64;
        let mut axes = vec![
            axis(before, plane * between as i64), axis(along, signed(pixel, backwards.0)),
            axis(between, plane),
            axis(across, signed(row, backwards.1)),
        ];
        let channels = axis(channels, signed(run as i64, backwards.2));
        axes.insert(if last { 2 } else { 0 }, channels);
        prop_assume!(along > 1 || channels.len > 1);
        let transpose = Transpose::choose(&axes, run).expect("a stretch");
        for register in registers() {
            let [plain, fast] = packed(&axes, run, |input, first, out| {
                transpose.pack(register, input, first, out);
            });
            prop_assert_eq!(plain, fast, "{:?}", register);
        }
    }

    /// Stretches of a few cache lines, most items of which are omitted, with few lines and with many.
    #[test]
    fn sparse_stretches_are_transposed(
        run in prop::sample::select(vec![1u64, 2, 3, 4, 6, 8, 12, 16, 24]),
        (step, along, across) in (5i64..12, 2u64..40, prop_oneof![2u64..9, 2u64..150]),
        (channels, between) in (1u64..3, 1u64..3), backwards in any::<(bool, bool)>(),
    ) {
        let signed = |stride: i64, backwards| if backwards { -stride } else { stride };
        let pixel = run as i64 * step;
        let row = pixel * along as i64 + 17;
        prop_assume!(pixel as u64 * (along - 1) + channels * run <= 256);
        let axes = [
            axis(channels, run as i64), axis(along, signed(pixel, backwards.0)),
            axis(between, row * across as i64), axis(across, signed(row, backwards.1)),
        ];
        let transpose = Transpose::choose(&axes, run).expect("a stretch");
        for register in registers() {
            let [plain, fast] = packed(&axes, run, |input, first, out| {
                transpose.pack(register, input, first, out);
            });
            prop_assert_eq!(plain, fast, "{:?}", register);
        }
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn a_few_rows_are_interleaved(
        run in 1u64..8, (along, gap, repeated) in (2u64..70, 0i64..3, any::<bool>()), across in 2u64..9,
        (before, between) in (1u64..3, -200i64..200), backwards in any::<(bool, bool)>(),
    ) {
        let signed = |stride: i64, backwards| if backwards { -stride } else { stride };
        let stride = if repeated && gap == 2 { 0 } else { run as i64 + gap };
        prop_assume!(stride + run as i64 <= 16);
        let fits = if stride == 0 { 16 / run } else { (16 - run) / stride as u64 + 1 };
        prop_assume!(along.min(fits) * across * run >= 16);
        let axes = [
            axis(before, between), axis(along, signed(stride, backwards.0)),
            axis(across, signed(stride * along as i64 + 17, backwards.1)),
        ];
        let pattern = Interleave::choose(&axes, run).expect("a pattern");
        for register in registers().into_iter().flatten() {
            let [plain, fast] = packed(&axes, run, |input, first, out| {
                pattern.pack(register, input, first, out);
            });
            prop_assert_eq!(plain, fast, "{:?}", register);
        }
    }

    /// Axes so short that only several of them together have the items or the lines of a square.
    #[test]
    fn many_short_axes_are_transposed(
        run in prop::sample::select(vec![1u64, 2, 4, 8, 16]),
        lens in prop::collection::vec(2u64..4, 6..13).prop_shuffle(),
        order in Just((0..13).collect::<Vec<usize>>()).prop_shuffle(), backwards in any::<u16>(),
    ) {
        let mut stride = run as i64;
        let dense = lens.iter().enumerate().map(|(number, &len)| {
            let now = if backwards >> number & 1 == 1 { -stride } else { stride };
            stride *= len as i64;
            axis(len, now)
        });
        let dense: Vec<Axis> = dense.collect();
        let axes: Vec<Axis> = order.into_iter().filter_map(|at| dense.get(at).copied()).collect();
        prop_assume!(dense_bytes(&axes, 1) < 100_000);
        for register in registers() {
            let [plain, fast] = packed(&axes, run, |input, first, out| {
                pack_with(register, &axes, run, input, first, out);
            });
            prop_assert_eq!(plain, fast, "{:?}", register);
        }
    }

    #[test]
    fn long_rows_are_transposed_in_stretches(
        run in prop::sample::select(vec![1u64, 2, 3, 4, 6, 8, 12]),
        (more, across) in (1u64..9000, 2u64..20), backwards in any::<(bool, bool)>(),
    ) {
        let along = (16 << 10) / run + 1 + more / run;
        let signed = |stride: u64, backwards| if backwards { -(stride as i64) } else { stride as i64 };
        let axes = [
            axis(along, signed(run, backwards.0)), axis(across, signed(along * run + 17, backwards.1)),
        ];
        let transpose = Transpose::choose(&axes, run).expect("a stretch");
        for register in registers() {
            let [plain, fast] = packed(&axes, run, |input, first, out| {
                transpose.pack(register, input, first, out);
            });
            prop_assert_eq!(plain, fast, "{:?}", register);
        }
    }

    #[test]
    fn runs_of_each_length_are_copied(
        run in prop_oneof![(0u32..5).prop_map(|power| 1 << power), 1u64..600],
        (len, gap) in (1u64..40, 0i64..40), backwards in any::<bool>(),
    ) {
        let stride = run as i64 + gap;
        let axes = [axis(2, 3 * stride), axis(len, if backwards { -stride } else { stride })];
        prop_assume!(Transpose::choose(&axes, run).is_none());
        let [plain, fast] =
            packed(&axes, run, |input, first, out| pack_with(None, &axes, run, input, first, out));
        prop_assert_eq!(plain, fast);
    }
}
