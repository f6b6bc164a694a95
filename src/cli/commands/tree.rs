//! `tslice info --tree`: names as a tree by their dots, neighbours that hold alike on one line.

use std::collections::HashMap;

use tslice::format::printable;
use tslice::input::Input;
use tslice::shape::AsTuple;

use super::tensors::TensorCounts;

/// Pieces of a name; what is behind the last of them belongs to it.
const DEEPEST: usize = 64;

struct Tree<'a> {
    input: &'a Input,
    /// Nodes behind their parents; the first is the root.
    nodes: Vec<Node<'a>>,
}

#[derive(Default)]
struct Node<'a> {
    name: &'a str,
    /// The tensor of this name, if there is one.
    tensor: Option<usize>,
    children: Vec<usize>,
    counts: TensorCounts,
    /// The same for nodes that hold alike.
    kind: usize,
}

/// What nodes that hold alike have in common.
#[derive(PartialEq, Eq, Hash)]
struct Kind<'a> {
    tensor: Option<[String; 2]>,
    children: Vec<(&'a str, usize)>,
}

/// The rows of a table of these tensors.
pub(super) fn rows(input: &Input, numbers: &[usize]) -> Vec<[String; 6]> {
    let mut tree = Tree { input, nodes: vec![Node::default()] };
    tree.plant(numbers);
    tree.find_kinds();
    let heading = ["name", "dtype", "shape", "tensors", "elements", "bytes"];
    let mut rows = vec![heading.map(str::to_owned)];
    tree.add_rows(0, 0, 1, &mut rows);
    rows
}

impl<'a> Tree<'a> {
    fn plant(&mut self, numbers: &[usize]) {
        let mut places: HashMap<(usize, &'a str), usize> = HashMap::new();
        for &number in numbers {
            let mut at = 0;
            for name in
                self.input.contents().tensors.name(number).unwrap_or("-").splitn(DEEPEST, '.')
            {
                let next = self.nodes.len();
                let place = *places.entry((at, name)).or_insert(next);
                if place == next {
                    self.nodes.push(Node { name, ..Node::default() });
                    self.nodes[at].children.push(place);
                }
                at = place;
            }
            self.nodes[at].tensor = Some(number);
        }
    }

    /// Put numbered children in order, add up what nodes hold, and tell kinds apart.
    fn find_kinds(&mut self) {
        let mut kinds: HashMap<Kind<'a>, usize> = HashMap::new();
        for at in (0..self.nodes.len()).rev() {
            let children = self.in_order(&self.nodes[at].children);
            let mut counts = TensorCounts::default();
            let tensor = self.nodes[at].tensor.map(|number| {
                let tensor = self.input.contents().tensors.at(number);
                counts.add(&tensor);
                [tensor.dtype.to_string(), AsTuple(&tensor.element_shape()).to_string()]
            });
            for &child in &children {
                counts.add_copies(self.nodes[child].counts, 1);
            }
            let named =
                children.iter().map(|&child| (self.nodes[child].name, self.nodes[child].kind));
            let kind = Kind { tensor, children: named.collect() };
            let next = kinds.len();
            let kind = *kinds.entry(kind).or_insert(next);
            let node = &mut self.nodes[at];
            (node.children, node.counts, node.kind) = (children, counts, kind);
        }
    }

    /// Nodes in the order of the file, but for those whose names are numbers: they stand together, ascending.
    fn in_order(&self, nodes: &[usize]) -> Vec<usize> {
        let number = |node: &usize| number(self.nodes[*node].name);
        let first = nodes.iter().position(|node| number(node).is_some()).unwrap_or(0);
        let mut ordered: Vec<(usize, Option<u64>, usize)> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| match number(node) {
                Some(number) => (first, Some(number), *node),
                None => (at, None, *node),
            })
            .collect();
        ordered.sort_unstable();
        ordered.into_iter().map(|(.., node)| node).collect()
    }

    /// Add the rows of what is below a node, of which there are `copies`.
    fn add_rows(&self, at: usize, depth: usize, copies: u64, rows: &mut Vec<[String; 6]>) {
        for group in self.groups(at) {
            let mut label = self.label(group);
            let mut copies = copies * group.len() as u64;
            let mut node = group[0];
            // a line for all names down to a fork
            while let (None, [only]) = (self.nodes[node].tensor, &self.groups(node)[..]) {
                label = format!("{label}.{}", self.label(only));
                copies *= only.len() as u64;
                node = only[0];
            }
            let Node { tensor, counts, .. } = &self.nodes[node];
            let mut all = TensorCounts::default();
            all.add_copies(*counts, copies);
            let [dtype, shape] = tensor.map_or_else(Default::default, |number| {
                let tensor = self.input.contents().tensors.at(number);
                [tensor.dtype.to_string(), AsTuple(&tensor.element_shape()).to_string()]
            });
            let label = format!("{:1$}{2}", "", 2 * depth, printable(&label));
            let [tensors, elements, bytes] = all.cells();
            rows.push([label, dtype, shape, tensors, elements, bytes]);
            self.add_rows(node, depth + 1, copies, rows);
        }
    }

    /// The children of a node, neighbours of one kind together.
    fn groups(&self, at: usize) -> Vec<&[usize]> {
        let same = |one: &usize, other: &usize| self.nodes[*one].kind == self.nodes[*other].kind;
        self.nodes[at].children.chunk_by(same).collect()
    }

    /// The names of nodes, as patterns of names have them.
    fn label(&self, nodes: &[usize]) -> String {
        let names: Vec<&str> = nodes.iter().map(|&node| self.nodes[node].name).collect();
        match &names[..] {
            [only] => (*only).to_owned(),
            [first, .., last] if follow(&names) => format!("{{{first}..{last}}}"),
            _ => format!("{{{}}}", names.join(",")),
        }
    }
}

/// The number that a name is, as numbers are written.
fn number(name: &str) -> Option<u64> {
    name.parse().ok().filter(|number: &u64| number.to_string() == name)
}

/// Whether names are numbers that follow each other.
fn follow(names: &[&str]) -> bool {
    let next = |pair: &[&str]| Some(number(pair[0])?.checked_add(1)? == number(pair[1])?);
    names.windows(2).all(|pair| next(pair) == Some(true))
}
