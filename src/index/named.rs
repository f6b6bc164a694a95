//! Items with names of dimensions: `[time=0, lat=10:20]`, as in xarray's isel.

use super::list::List;
use super::resolve::{ListShape, ResolveError, Rules, Selection, resolve_with};
use super::{IndexExpr, Item, SliceItem};
use crate::shape::dimension;

/// Apply an expression whose items have names to a shape whose axes have `names`: each item to the
/// axis of its name, each list along its own axis; other axes are taken whole. `files` are the
/// contents of its lists' files, in order.
pub fn resolve_named(
    expr: &IndexExpr,
    shape: &[u64],
    names: &[Option<String>],
    rules: Rules,
    files: &[ListShape],
) -> Result<Selection, ResolveError> {
    // the item of each axis, and the contents of its list's file
    let mut of_axes: Vec<Option<(usize, Option<&ListShape>)>> = vec![None; shape.len()];
    let mut files = files.iter();
    for (item, (name, wanted)) in expr.names.iter().zip(&expr.items).enumerate() {
        let file = matches!(wanted, Item::List(List::File(_))).then(|| files.next()).flatten();
        match dimension(name, names) {
            Ok(axis) if axis < shape.len() => of_axes[axis] = Some((item, file)),
            Ok(_) => {}
            Err(_) if rules.passes_over => {}
            Err(fault) => return Err(ResolveError::new(item, fault)),
        }
    }
    let whole = Item::Slice(SliceItem::default());
    let item = |of: &Option<(usize, _)>| of.map_or(&whole, |(item, _)| &expr.items[item]).clone();
    let in_order = IndexExpr::new(of_axes.iter().map(item).collect());
    let files = of_axes.iter().filter_map(|of| of.and_then(|(_, file)| file).cloned());
    let files: Vec<ListShape> = files.collect();
    let named = |item: &mut usize| {
        *item = of_axes.get(*item).copied().flatten().map_or(0, |(item, _)| item);
    };
    let name_lists = |selection: &mut Selection| {
        selection.lists.iter_mut().for_each(|list| named(&mut list.item));
    };
    let resolved = resolve_with(&in_order, shape, Rules { outer: true, ..rules }, &files);
    match resolved {
        Ok(mut selection) => {
            name_lists(&mut selection);
            Ok(selection)
        }
        Err(mut error) => {
            named(&mut error.item);
            name_lists(&mut error.before);
            Err(error)
        }
    }
}
