//! One page of a b-tree in the making.
//!
//! A page is a header of 8 bytes (12 where it has children), a pointer of 2 bytes to every cell in the order of keys,
//! unused space, and the cells up to the end of the page. The header is: the kind of page; the first free block, which a
//! page that was never changed does not have; how many cells; where the cells begin; how many bytes between cells are
//! unused, none; and the right-most child.

/// What is on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Index entries and the pages between them.
    IndexInterior,
    /// Row ids and the pages with the rows up to them.
    TableInterior,
    /// Index entries.
    IndexLeaf,
    /// Rows.
    TableLeaf,
}

impl Kind {
    /// What stands above pages of this kind.
    pub(super) fn above(self) -> Self {
        match self {
            Self::TableLeaf | Self::TableInterior => Self::TableInterior,
            Self::IndexLeaf | Self::IndexInterior => Self::IndexInterior,
        }
    }

    /// Whether pages of this kind have no children.
    pub(super) fn is_leaf(self) -> bool {
        matches!(self, Self::TableLeaf | Self::IndexLeaf)
    }

    /// The first byte of such a page.
    fn byte(self) -> u8 {
        match self {
            Self::IndexInterior => 2,
            Self::TableInterior => 5,
            Self::IndexLeaf => 10,
            Self::TableLeaf => 13,
        }
    }
}

/// A page that takes cells as long as there is room.
#[derive(Debug)]
pub(super) struct Page {
    kind: Kind,
    size: usize,
    /// The cells, one behind the other.
    cells: Vec<u8>,
    /// Where each begins.
    starts: Vec<usize>,
}

impl Page {
    pub(super) fn new(kind: Kind, size: usize) -> Self {
        Self { kind, size, cells: Vec::with_capacity(size), starts: Vec::new() }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether a cell of `length` bytes fits.
    pub(super) fn has_room(&self, length: usize) -> bool {
        self.taken() + 2 + length <= self.size
    }

    /// Appends a cell, whose key is not below those before.
    pub(super) fn push(&mut self, cell: &[u8]) {
        self.starts.push(self.cells.len());
        self.cells.extend_from_slice(cell);
    }

    /// Takes the last cell out.
    pub(super) fn pop(&mut self) -> Option<Vec<u8>> {
        self.starts.pop().map(|start| self.cells.split_off(start))
    }

    /// Appends the page to `out` and begins another one; `right` is the right-most child of one with children.
    pub(super) fn write(&mut self, right: Option<u32>, out: &mut Vec<u8>) {
        let end = out.len() + self.size;
        let content = self.size - self.cells.len();
        out.extend_from_slice(&[self.kind.byte(), 0, 0]);
        out.extend_from_slice(&short(self.starts.len()));
        out.extend_from_slice(&short(content));
        out.push(0);
        if let Some(right) = right {
            out.extend_from_slice(&right.to_be_bytes());
        }
        out.extend(self.starts.iter().flat_map(|start| short(content + start)));
        out.resize(end - self.cells.len(), 0);
        out.extend_from_slice(&self.cells);
        self.cells.clear();
        self.starts.clear();
    }

    /// Bytes of the header, the pointers and the cells.
    fn taken(&self) -> usize {
        let header = if self.kind.is_leaf() { 8 } else { 12 };
        header + 2 * self.starts.len() + self.cells.len()
    }
}

/// A number of at most the bytes of a page, which are no more than 2^15.
fn short(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap_or_default().to_be_bytes()
}
