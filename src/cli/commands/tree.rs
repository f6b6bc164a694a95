//! `tslice info --tree`: names as a tree by their dots, with neighbours of equal contents on one
//! line.

use std::collections::HashMap;
use std::io;
use std::io::Write;

use tslice::input::Input;
use tslice::shape::AsTuple;
use tslice::tensor::printable;

use super::tensors::TensorCounts;
use crate::cli::report::{Align, Table};

/// The most pieces of a name; the rest of the name belongs to the last one.
const DEEPEST: usize = 64;

/// A tree of names. There may be a million tensors: the contents of nodes are stored once for all
/// nodes with equal contents.
struct Tree<'a> {
    input: &'a Input,
    /// Nodes behind their parents; the first is the root.
    nodes: Vec<Node<'a>>,
    /// The contents of the nodes of each kind.
    counts: Vec<TensorCounts>,
}

/// A name, and the nodes below it. Nodes are named by their numbers.
struct Node<'a> {
    name: &'a str,
    /// The tensor of this name, if there is one.
    tensor: Option<u32>,
    /// The first tensor in the order asked for, of this name or below it.
    first: u32,
    /// The numbers of the last child and of the previous sibling; 0, the root, stands for none.
    last_child: u32,
    before: u32,
    /// The kind: nodes with equal contents have the same.
    kind: u32,
}

/// The contents of a kind of nodes.
#[derive(PartialEq, Eq, Hash)]
struct Kind<'a> {
    tensor: Option<[String; 2]>,
    children: Vec<(&'a str, u32)>,
}

type Row = [String; 6];

/// Write a table of these tensors.
pub(super) fn write(out: &mut dyn Write, input: &Input, numbers: &[usize]) -> io::Result<()> {
    let mut tree = Tree { input, nodes: vec![Node::new("", 0)], counts: Vec::new() };
    tree.plant(numbers);
    tree.find_kinds();
    let heading = ["name", "dtype", "shape", "tensors", "elements", "bytes"].map(str::to_owned);
    let left = Align::Left;
    let right = Align::Right;
    let mut table = Table::of([&heading], [left, left, left, right, right, right], 2);
    // the rows are made twice, as there may be many
    tree.visit_rows(0, 0, 1, &mut |row| {
        table.widen(row);
        Ok(())
    })?;
    out.write_all(table.line(&heading).as_bytes())?;
    tree.visit_rows(0, 0, 1, &mut |row| out.write_all(table.line(row).as_bytes()))
}

impl<'a> Node<'a> {
    fn new(name: &'a str, first: u32) -> Node<'a> {
        Node { name, tensor: None, first, last_child: 0, before: 0, kind: 0 }
    }
}

impl<'a> Tree<'a> {
    fn pieces(&self, number: usize) -> impl Iterator<Item = &'a str> + use<'a> {
        let name = self.input.contents().tensors.name(number).unwrap_or("-");
        name.splitn(DEEPEST, '.')
    }

    /// Make the nodes of these tensors; names with a common beginning share nodes.
    fn plant(&mut self, numbers: &[usize]) {
        let mut order: Vec<u32> = (0..).take(numbers.len()).collect();
        let pieces = |at: u32| self.pieces(numbers[at as usize]);
        order.sort_by(|&one, &other| pieces(one).cmp(pieces(other)));
        let mut path: Vec<u32> = vec![0];
        for at in order {
            let mut depth = 0;
            for name in self.pieces(numbers[at as usize]) {
                let known = path.get(depth + 1).copied();
                if known.is_none_or(|at| self.nodes[at as usize].name != name) {
                    path.truncate(depth + 1);
                    let at = self.nodes.len() as u32;
                    let parent = &mut self.nodes[path[depth] as usize];
                    let before = std::mem::replace(&mut parent.last_child, at);
                    self.nodes.push(Node { before, ..Node::new(name, at) });
                    path.push(at);
                }
                depth += 1;
                let node = &mut self.nodes[path[depth] as usize];
                node.first = node.first.min(at);
            }
            path.truncate(depth + 1);
            let number = numbers[at as usize] as u32;
            self.nodes[path[depth] as usize].tensor = Some(number);
        }
    }

    /// Find the kinds, and count the contents of the nodes of each.
    fn find_kinds(&mut self) {
        let mut kinds: HashMap<Kind<'a>, u32> = HashMap::new();
        for at in (0..self.nodes.len()).rev() {
            let children = self.children(at as u32);
            let node = |child: &u32| &self.nodes[*child as usize];
            let named = children.iter().map(|child| (node(child).name, node(child).kind));
            let kind = Kind { tensor: self.cells(at as u32), children: named.collect() };
            let next = self.counts.len() as u32;
            let kind = *kinds.entry(kind).or_insert(next);
            if kind == next {
                let mut counts = TensorCounts::default();
                if let Some(number) = self.nodes[at].tensor {
                    counts.add(&self.input.contents().tensors.at(number as usize));
                }
                for child in &children {
                    counts.add_copies(self.counts[node(child).kind as usize], 1);
                }
                self.counts.push(counts);
            }
            self.nodes[at].kind = kind;
        }
    }

    /// The dtype and the shape of the tensor of a node.
    fn cells(&self, at: u32) -> Option<[String; 2]> {
        let number = self.nodes[at as usize].tensor?;
        let tensor = self.input.contents().tensors.at(number as usize);
        Some([tensor.dtype.to_string(), AsTuple(&tensor.element_shape()).to_string()])
    }

    /// The children of a node in the order of the file, except those whose names are numbers: these
    /// are together, ascending.
    fn children(&self, at: u32) -> Vec<u32> {
        let node = |at: u32| &self.nodes[at as usize];
        let next = |at: u32| Some(at).filter(|&at| at > 0);
        let children =
            std::iter::successors(next(node(at).last_child), |&at| next(node(at).before));
        let mut ordered: Vec<(u32, Option<u64>, u32)> =
            children.map(|at| (node(at).first, number(node(at).name), at)).collect();
        let numbered = ordered.iter().filter(|(_, number, _)| number.is_some());
        let first = numbered.map(|(first, ..)| *first).min();
        for (at, number, _) in &mut ordered {
            *at = first.filter(|_| number.is_some()).unwrap_or(*at);
        }
        ordered.sort_unstable();
        ordered.into_iter().map(|(.., at)| at).collect()
    }

    /// Visit the rows below a node, of which there are `copies`.
    fn visit_rows(
        &self,
        at: u32,
        depth: usize,
        copies: u64,
        visit: &mut dyn FnMut(&Row) -> io::Result<()>,
    ) -> io::Result<()> {
        let children = self.children(at);
        for group in self.groups(&children) {
            let mut label = self.label(group);
            let mut copies = copies * group.len() as u64;
            let mut node = group[0];
            // a line for all names down to a fork
            while self.nodes[node as usize].tensor.is_none() {
                let children = self.children(node);
                let [only] = self.groups(&children)[..] else { break };
                label = format!("{label}.{}", self.label(only));
                copies *= only.len() as u64;
                node = only[0];
            }
            let mut all = TensorCounts::default();
            all.add_copies(self.counts[self.nodes[node as usize].kind as usize], copies);
            let [dtype, shape] = self.cells(node).unwrap_or_default();
            let label = format!("{:1$}{2}", "", 2 * depth, printable(&label));
            let [tensors, elements, bytes] = all.cells();
            visit(&[label, dtype, shape, tensors, elements, bytes])?;
            self.visit_rows(node, depth + 1, copies, visit)?;
        }
        Ok(())
    }

    /// Children in groups: adjacent children of the same kind are one group.
    fn groups<'c>(&self, children: &'c [u32]) -> Vec<&'c [u32]> {
        let kind = |at: &u32| self.nodes[*at as usize].kind;
        children.chunk_by(|one, other| kind(one) == kind(other)).collect()
    }

    /// The names of nodes, as one pattern.
    fn label(&self, nodes: &[u32]) -> String {
        let names: Vec<&str> = nodes.iter().map(|&node| self.nodes[node as usize].name).collect();
        match &names[..] {
            [only] => (*only).to_owned(),
            [first, .., last] if follow(&names) => format!("{{{first}..{last}}}"),
            _ => format!("{{{}}}", names.join(",")),
        }
    }
}

/// The number that is written as `name`, in its usual spelling.
fn number(name: &str) -> Option<u64> {
    name.parse().ok().filter(|number: &u64| number.to_string() == name)
}

/// Whether names are consecutive numbers.
fn follow(names: &[&str]) -> bool {
    let next = |pair: &[&str]| Some(number(pair[0])?.checked_add(1)? == number(pair[1])?);
    names.windows(2).all(|pair| next(pair) == Some(true))
}
