//! `tslice view -o PICTURE.png`, and `--image` in the terminal.
//!
//! **Why no package.** Half blocks in colours work in every terminal, also through `ssh` and `tmux`. `viuer` supports the
//! protocols of kitty, iTerm and sixel, but depends on `image` with its decoders, `crossterm` and a dozen more packages,
//! and these protocols cannot be tested here. For more pixels, users write a `.png`.

use std::fmt::Write;
use std::path::Path;

use tslice::dtype::{DType, Scalar};
use tslice::error::FileName;
use tslice::execute::{Progress, Workers};
use tslice::input::Input;
use tslice::job::{Chosen, Drawing};
use tslice::picture::{Colours, Sheet};
use tslice::sink::{Destination, SinkOptions};
use tslice::tensor::printable;

use super::output;
use crate::cli::args::{InputArgs, PictureArgs, ViewArgs};
use crate::cli::report::{Failure, choosing, print, print_raw, terminal_columns, watch};

pub(super) fn run(
    input: &mut Input,
    all: &[Chosen],
    args: &ViewArgs,
    workers: Workers,
) -> Result<(), Failure> {
    let [chosen] = all else {
        let InputArgs { tensor, exclude, .. } = &args.from;
        let by = choosing("-t", !tensor.is_empty(), !exclude.is_empty());
        let count = all.len();
        let message = format_args!("{by} {count} tensors, and a picture shows one");
        return Err(Failure::usage(message));
    };
    let picture = &args.picture;
    let target = picture.output.as_deref().map(png_target).transpose()?;
    let width = match (picture.width, &target) {
        (None, None) => Some(columns_for(chosen)),
        (width, _) => width.map(u64::from),
    };
    let sheet = Sheet::new(&chosen.shape, most_of_colours(chosen, picture), width);
    let sheet = sheet.map_err(Failure::new)?;
    let force = picture.force;
    let fsync = picture.fsync;
    let options = SinkOptions { force, fsync, ..SinkOptions::default() };
    if let Some(target) = &target {
        Drawing::check_png(target, options)?;
        output::refuse_terminal(target)?;
        if picture.dry_run {
            return print(&would_write(target, &sheet));
        }
    }
    // a picture may be read twice, so a pipe is copied to a file
    output::spool(input, args.quiet)?;
    let (low, high) = colour_range(input, chosen, &sheet, args, &workers)?;
    let map = picture.colormap.as_deref().unwrap_or("viridis");
    let colours = Colours::new(map, low, high)
        .ok_or_else(|| Failure::usage(format_args!("there is no colour map {map}")))?;
    let drawing = Drawing::new(input, chosen, sheet, colours, workers)?;
    let total = chosen.bytes();
    match &target {
        Some(target) => watch(total, args.quiet, |progress| {
            drawing.write_png(input, target, options, progress)
        })?,
        None => print_raw(&watch(total, args.quiet, |progress| in_terminal(&drawing, progress))?)?,
    }
    if drawing.is_clipped() {
        Failure::new("colours are numbers from 0 to 1: others are clipped").print_note();
    }
    Ok(())
}

/// The number at the upper end of a channel, if elements may be colours: bytes, and floats of three
/// axes without a colour map.
fn most_of_colours(chosen: &Chosen, args: &PictureArgs) -> Option<f64> {
    let is_mapped = args.colormap.is_some() || args.range.is_some();
    match chosen.dtype {
        DType::Scalar(Scalar::U8, _) => Some(255.0),
        DType::Scalar(Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64, _) => {
            Some(1.0).filter(|_| chosen.shape.len() == 3 && !is_mapped)
        }
        _ => None,
    }
}

fn would_write(target: &Destination, sheet: &Sheet) -> String {
    let file = FileName::from(target).to_string();
    let width = sheet.width();
    let height = sheet.height();
    let colours = if sheet.pixel_bytes() == 4 { "RGBA" } else { "RGB" };
    format!("would write {}: {width} x {height} pixels, {colours}\n", printable(&file))
}

/// The numbers that get the first and the last colour of the map.
fn colour_range(
    input: &mut Input,
    chosen: &Chosen,
    sheet: &Sheet,
    args: &ViewArgs,
    workers: &Workers,
) -> Result<(f64, f64), Failure> {
    let PictureArgs { colormap, range, .. } = &args.picture;
    if !sheet.has_colours() {
        return Ok(watch(chosen.bytes(), args.quiet, |progress| {
            chosen.colour_range(input, *range, workers, progress)
        })?);
    }
    if colormap.is_some() || range.is_some() {
        return Err(Failure::usage(
            "--colormap and --range have no effect: the elements are colours already",
        ));
    }
    Ok((0.0, 255.0))
}

fn png_target(path: &Path) -> Result<Destination, Failure> {
    let is_png = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"));
    let is_stream = path == Path::new("-") || path.metadata().is_ok_and(|meta| !meta.is_file());
    if !is_png && !is_stream {
        let message =
            format!("{}: view writes pictures, and a picture ends in .png", path.display());
        return Err(Failure::usage(message).hint("without `view`, the elements are written"));
    }
    Ok(output::target(path))
}

/// The width in pixels: the terminal's width, but not more than there are elements.
fn columns_for(chosen: &Chosen) -> u64 {
    let most = chosen.shape.iter().rev().take(2).copied().max().unwrap_or(1).max(8);
    let most = if chosen.shape.len() > 2 { u64::MAX } else { most };
    terminal_columns().min(most)
}

/// Draw two pixels as one half block or, without colours, as a character from dark to light.
fn in_terminal(drawing: &Drawing<'_>, progress: &Progress) -> Result<String, Failure> {
    let with_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
    let pixel_bytes = drawing.pixel_bytes();
    let mut upper: Option<Vec<u8>> = None;
    let mut text = String::new();
    drawing.draw(progress, |row| {
        match upper.take() {
            None => upper = Some(row.to_vec()),
            Some(above) => line(&mut text, &above, Some(row), pixel_bytes, with_colours),
        }
        Ok(())
    })?;
    if let Some(above) = upper {
        line(&mut text, &above, None, pixel_bytes, with_colours);
    }
    Ok(text)
}

fn line(
    text: &mut String,
    above: &[u8],
    below: Option<&[u8]>,
    pixel_bytes: usize,
    with_colours: bool,
) {
    const SHADES: &[u8] = b" .:-=+*#%@";
    for (number, pixel) in above.chunks_exact(pixel_bytes).enumerate() {
        let under = below.and_then(|row| row.chunks_exact(pixel_bytes).nth(number));
        // writing to a string cannot fail
        let _ = if with_colours {
            let behind = under.map(|it| format!("\x1b[48;2;{};{};{}m", it[0], it[1], it[2]));
            let behind = behind.unwrap_or_default();
            write!(text, "\x1b[38;2;{};{};{}m{behind}▀", pixel[0], pixel[1], pixel[2])
        } else {
            let light = |it: &[u8]| {
                (2126 * u32::from(it[0]) + 7152 * u32::from(it[1]) + 722 * u32::from(it[2]))
                    / 10_000
            };
            let light = (light(pixel) + under.map_or_else(|| light(pixel), light)) / 2;
            write!(text, "{}", char::from(SHADES[(light * 9 / 255) as usize]))
        };
    }
    text.push_str(if with_colours { "\x1b[0m\n" } else { "\n" });
}
