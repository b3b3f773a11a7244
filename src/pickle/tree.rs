//! Small lists, tuples and dicts that are kept as they are: settings, unknown keys, frames' extra fields.
//!
//! The sink drops what it has used, and there is a budget for the rest: what exceeds it becomes opaque, so that an unknown
//! key with a gigabyte under it costs nothing. Node numbers only ever grow; a number of a dropped node finds nothing.

use super::error::PickleErrorKind;
use super::value::Value;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A list.
    List,
    /// A tuple.
    Tuple,
    /// A dict: its items are key, value, key, value, …
    Dict,
}

#[derive(Debug)]
struct Node {
    number: u32,
    kind: NodeKind,
    items: Vec<Value>,
    /// Levels of nesting below, itself included.
    depth: u32,
    /// Values it would have written out in full, shared ones counted each time.
    weight: u64,
    /// Its content exceeded the budget.
    lost: bool,
}

/// All nodes that are kept.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    next: u32,
    held: usize,
    lost: u64,
    depth_limit: u32,
    budget: usize,
}

/// What a node costs beyond its items, in values.
const NODE_COST: usize = 6;

impl Tree {
    pub(crate) fn new(depth_limit: u32, budget: usize) -> Self {
        Self { nodes: Vec::new(), next: 0, held: 0, lost: 0, depth_limit, budget }
    }

    /// Number the next node gets.
    #[inline]
    pub(crate) fn floor(&self) -> u32 {
        self.next
    }

    /// Containers that were not kept because there was too much in them.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn index(&self, number: u32) -> Option<usize> {
        self.nodes.binary_search_by_key(&number, |node| node.number).ok()
    }

    fn find(&self, number: u32) -> Option<&Node> {
        self.index(number).and_then(|index| self.nodes.get(index)).filter(|node| !node.lost)
    }

    /// Kind and items of a node; `None` for one that was dropped.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<(NodeKind, &[Value])> {
        self.find(number).map(|node| (node.kind, node.items.as_slice()))
    }

    /// Adds a node. What exceeds the budget is opaque instead, unless it is one of the few that lead to rows.
    pub(crate) fn add(&mut self, kind: NodeKind, items: &[Value]) -> Result<Value, PickleErrorKind> {
        let cost = items.len() + NODE_COST;
        let vital = items.iter().any(|item| matches!(item, Value::Taken { .. } | Value::TakenList { .. }));
        if (self.held + cost > self.budget && !vital) || self.next == u32::MAX {
            self.lost += 1;
            return Ok(Value::Opaque);
        }
        let number = self.next;
        self.next += 1;
        self.held += NODE_COST;
        self.nodes.push(Node { number, kind, items: Vec::new(), depth: 1, weight: 1, lost: false });
        self.extend(number, items)?;
        Ok(Value::Node(number))
    }

    /// Adds items to a node.
    pub(crate) fn extend(&mut self, number: u32, items: &[Value]) -> Result<(), PickleErrorKind> {
        let mut depth = 0;
        let mut weight = 0_u64;
        for item in items {
            let below = if let Value::Node(child) = item { self.find(*child) } else { None };
            depth = depth.max(below.map_or(0, |node| node.depth));
            weight = weight.saturating_add(below.map_or(1, |node| node.weight));
        }
        if depth >= self.depth_limit {
            let limit = u64::from(self.depth_limit);
            return Err(PickleErrorKind::LimitExceeded { of: "levels of nesting", limit });
        }
        let vital = items.iter().any(|item| matches!(item, Value::Taken { .. } | Value::TakenList { .. }));
        let budget = self.budget;
        let held = self.held;
        let Some(node) = self.index(number).and_then(|index| self.nodes.get_mut(index)) else {
            return Ok(());
        };
        if node.lost {
            return Ok(());
        }
        node.depth = node.depth.max(depth + 1);
        node.weight = node.weight.saturating_add(weight);
        let weight_limit = u64::try_from(budget).unwrap_or(u64::MAX);
        if !vital && (held + items.len() > budget || node.weight > weight_limit) {
            self.held -= node.items.len();
            node.items = Vec::new();
            node.lost = true;
            self.lost += 1;
        } else {
            self.held += items.len();
            node.items.extend_from_slice(items);
        }
        Ok(())
    }

    /// Drops the nodes from `floor` on.
    #[inline]
    pub(crate) fn drop_from(&mut self, floor: u32) {
        while let Some(node) = self.nodes.pop_if(|node| node.number >= floor) {
            self.held -= node.items.len() + NODE_COST;
        }
    }
}
