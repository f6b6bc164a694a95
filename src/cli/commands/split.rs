//! `tslice split INPUT [INDEX] --parts N -o PATTERN`: a file into several.

use std::path::Path;

use tslice::error::Error;
use tslice::execute::Workers;
use tslice::input::{OpenOptions, PartNaming};
use tslice::job::{Cuts, Extent, PartNames, PartsTo, Select, Split, SplitOptions, WHOLE_AXIS};

use super::index::{Index, list};
use super::join::SHARD_BYTES;
use super::part::Share;
use super::{index, input, output};
use crate::cli::args::{CopyArgs, SplitArgs};
use crate::cli::report::Failure;

pub(super) fn run(args: &SplitArgs) -> Result<(), Failure> {
    let CopyArgs { from, field, cast, to } = &args.through;
    if to.part.is_some() {
        if args.group.is_some() {
            return Err(Failure::usage("--part cannot be used with split --group"));
        }
        return Err(Failure::usage("--part writes one output, and a split has several")
            .hint("write each part as a slice of the input"));
    }
    let index = Index::parse(&args.index)?;
    let workers = output::workers(to.threads);
    let index = index.open(from, &workers, to.quiet, "INPUT", &args.input)?;
    let parts_to = parts_to(args, &workers)?;
    let cuts = cuts(args, &parts_to)?;
    let options = OpenOptions {
        rest: args.keep_rest,
        ..input::options(from, field.field.as_deref(), &workers)?
    };
    let failed = |error| index.failure(error);
    let input = tslice::formats::open(&input::location(&args.input), &options).map_err(failed)?;
    let by_count = matches!(cuts, Cuts::Parts(_));
    let options = SplitOptions {
        cuts,
        equal: args.equal,
        axes: input::axes(&args.axis)?,
        squeeze: args.squeeze,
        to: parts_to,
        select: Select {
            patterns: from.tensor.clone(),
            keep_rest: args.keep_rest,
            ..Select::default()
        },
        transform: index::transform(Some(field), &args.index.reshape, Some(cast))?,
        index: index.of_job(),
        casts: index::casts(cast)?,
    };
    let mut split = Split::new(input, options).map_err(failed)?;
    output::run(&mut split, to, &Share::Whole, failed)?;
    if let (false, Some(place)) = (to.quiet, split.better_place()) {
        let note = "names of the parts sort otherwise than their numbers";
        Failure::new(note)
            .hint(format_args!("{place} in place of the first one sorts"))
            .print_note();
    }
    if let (true, false, Some(uneven)) = (by_count, to.quiet, split.take_uneven()) {
        failed(uneven).hint("--equal refuses that").print_note();
    }
    Ok(())
}

fn parts_to<'a>(args: &'a SplitArgs, workers: &Workers) -> Result<PartsTo<'a>, Failure> {
    let to = &args.through.to;
    if let (Some(pattern), Some(into)) = (&args.group, &args.into) {
        let naming = Box::new(PartNaming::new(pattern, into).map_err(Error::from)?);
        let output = output::open(to, &input::location(&args.input), workers)?;
        let output = Box::new(output.in_shards(SHARD_BYTES));
        return Ok(PartsTo::Tensors { naming, output });
    }
    let names = names(to.output.as_deref())?;
    if to.with_files {
        return Err(Failure::usage(
            "--with-files is for a folder of shards, and split writes files",
        ));
    }
    Ok(PartsTo::Files { names, write: Box::new(output::options(to, workers)?) })
}

fn cuts(args: &SplitArgs, to: &PartsTo<'_>) -> Result<Cuts, Failure> {
    let cuts = &args.cuts;
    if let Some(text) = cuts.sizes.as_ref().filter(|text| text.contains('%')) {
        return Ok(Cuts::SizesOfAxis(extents("--sizes", text)?));
    }
    if let Some(text) = cuts.at.as_ref().filter(|text| text.contains('%')) {
        return Ok(Cuts::AtOfAxis(extents("--at", text)?));
    }
    if let Some(text) = &cuts.sizes {
        let sizes = list("--sizes", text)?.into_iter().map(input::length("--sizes", "a part"));
        let sizes: Vec<u64> = sizes.collect::<Result<_, _>>()?;
        if sizes.is_empty() {
            return Err(Failure::usage("--sizes: at least one length is needed"));
        }
        return Ok(Cuts::Sizes(sizes));
    }
    if let Some(text) = &cuts.at {
        return Ok(Cuts::At(list("--at", text)?));
    }
    let named = match to {
        PartsTo::Tensors { naming, .. } => naming.count(),
        PartsTo::Files { .. } => None,
    };
    match (cuts.every, cuts.parts.or(named)) {
        (Some(every), _) => Ok(Cuts::Every(every)),
        (None, Some(parts)) => Ok(Cuts::Parts(parts)),
        (None, None) => Err(Failure::usage("--parts, --sizes, --at or --every is missing")
            .hint("--parts N cuts into N parts, as np.array_split")),
    }
}

/// Parse lengths or positions of which some are percents, as in `70%,20%,10%` or `12.5%`.
fn extents(flag: &str, text: &str) -> Result<Vec<Extent>, Failure> {
    let extent = |item: &str| {
        let Some(percent) = item.strip_suffix('%') else {
            return item.trim().parse().ok().map(Extent::Elements);
        };
        let (whole, fraction) = percent.trim().split_once('.').unwrap_or((percent.trim(), "0"));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = is_number(whole) && is_number(fraction) && (1..=6).contains(&fraction.len());
        let share = format!("{whole}{fraction:0<6}").parse().ok().filter(|_| fits)?;
        (share <= WHOLE_AXIS).then_some(Extent::Share(share))
    };
    let all = text.split(',').map(|item| {
        extent(item.trim()).ok_or_else(|| {
            let item = item.trim();
            Failure::usage(format_args!(
                "{flag}: {item:?} is not a number, nor a share from 0% to 100%"
            ))
        })
    });
    all.collect()
}

fn names(output: Option<&Path>) -> Result<PartNames, Failure> {
    let Some(path) = output else {
        return Err(Failure::usage("--output PATTERN is missing")
            .hint("a pattern holds {} for the number of the part: -o 'part-{}.npy'"));
    };
    PartNames::parse(path).ok_or_else(|| {
        Failure::usage(format_args!(
            "{}: the name has no {{}} for the number of the part",
            path.display()
        ))
        .hint("put {} where the number goes, or {:04} for four digits: -o 'part-{:04}.npy'")
    })
}
