use std::collections::VecDeque;

/// A graph whose nodes have labels and whose edges have classes of at most 3.
pub(super) struct Labelled {
    pub(super) labels: Vec<u32>,
    /// The neighbours of each node, with the class of the edge.
    pub(super) beside: Vec<Vec<(u32, u8)>>,
}

/// An ordered partition of a graph's nodes; a cell is named by its first place.
#[derive(Clone)]
pub(super) struct Partition {
    /// The nodes, cell by cell.
    nodes: Vec<u32>,
    /// Where each node stands.
    place: Vec<u32>,
    /// The cell of each node.
    cell: Vec<u32>,
    /// The number of nodes of a cell, at its first place.
    len: Vec<u32>,
}

impl Partition {
    /// The coarsest one that tells labels apart, and nodes with different numbers of neighbours in some cell.
    pub(super) fn new(graph: &Labelled) -> Self {
        let n = graph.labels.len();
        let mut nodes: Vec<u32> = (0..n as u32).collect();
        nodes.sort_by_key(|&a| graph.labels[a as usize]);
        let mut out = Self { nodes, place: vec![0; n], cell: vec![0; n], len: vec![0; n] };
        let labels: Vec<u32> = out.nodes.iter().map(|&a| graph.labels[a as usize]).collect();
        let cells = out.split(0, &labels);
        out.refine(graph, cells.into());
        out
    }

    /// The nodes in order, where each cell has one.
    pub(super) fn order(&self) -> &[u32] {
        &self.nodes
    }

    /// The first cell of several nodes.
    pub(super) fn target(&self) -> Option<&[u32]> {
        let mut first = 0;
        while let Some(&len) = self.len.get(first) {
            if len > 1 {
                return self.nodes.get(first..first + len as usize);
            }
            first += 1;
        }
        None
    }

    /// Puts a node before the others of its cell, and refines.
    pub(super) fn individualised(&self, graph: &Labelled, node: u32) -> Self {
        let mut out = self.clone();
        let (first, place) = (out.cell[node as usize], out.place[node as usize]);
        out.nodes.swap(first as usize, place as usize);
        let mut keys = vec![1; out.len[first as usize] as usize];
        keys[0] = 0;
        out.split(first as usize, &keys);
        out.refine(graph, VecDeque::from([first]));
        out
    }

    /// Splits the nodes from `first` on into cells of equal keys, which are in order; the cells.
    fn split(&mut self, first: usize, keys: &[u32]) -> Vec<u32> {
        let mut cells = Vec::new();
        for (k, key) in keys.iter().enumerate() {
            if k == 0 || *key != keys[k - 1] {
                cells.push((first + k) as u32);
                self.len[first + k] = 0;
            }
            let (cell, node) = (cells[cells.len() - 1], self.nodes[first + k] as usize);
            (self.cell[node], self.place[node]) = (cell, (first + k) as u32);
            self.len[cell as usize] += 1;
        }
        cells
    }

    /// Splits cells until the nodes of each have as many neighbours of each edge class in every cell. What comes out doesn't depend on the
    /// numbers of the nodes. Hopcroft's rule: of the parts of a cell the largest needn't split others.
    fn refine(&mut self, graph: &Labelled, mut open: VecDeque<u32>) {
        let n = self.nodes.len();
        let mut waits = vec![false; n];
        open.iter().for_each(|&cell| waits[cell as usize] = true);
        // How many neighbours a node has in the cell that splits, eight bits for each class.
        let mut count = vec![0u32; n];
        while let Some(splitter) = open.pop_front() {
            waits[splitter as usize] = false;
            let range = splitter as usize..(splitter + self.len[splitter as usize]) as usize;
            let mut seen = Vec::new();
            for &a in &self.nodes[range] {
                for &(b, class) in &graph.beside[a as usize] {
                    if self.len[self.cell[b as usize] as usize] == 1 {
                        continue;
                    }
                    if count[b as usize] == 0 {
                        seen.push((self.cell[b as usize], 0, b));
                    }
                    count[b as usize] += 1 << (8 * u32::from(class));
                }
            }
            for (_, times, b) in &mut seen {
                *times = std::mem::take(&mut count[*b as usize]);
            }
            seen.sort_unstable();
            for met in seen.chunk_by(|one, other| one.0 == other.0) {
                self.split_by(met, &mut open, &mut waits);
            }
        }
    }

    /// Splits a cell by how often its nodes were met, those that weren't first: they aren't touched. `met` has the cell, the number
    /// of times and the node, in order.
    fn split_by(&mut self, met: &[(u32, u32, u32)], open: &mut VecDeque<u32>, waits: &mut [bool]) {
        let (cell, first) = (met[0].0, met[0].0 as usize);
        let left = self.len[first] as usize - met.len();
        for (&(.., node), k) in met.iter().zip(first + left..) {
            let place = self.place[node as usize] as usize;
            self.nodes.swap(place, k);
            (self.place[self.nodes[place] as usize], self.place[node as usize]) = (place as u32, k as u32);
        }
        let waited = waits[first];
        let keys: Vec<u32> = met.iter().map(|&(_, times, _)| times).collect();
        let mut cells = self.split(first + left, &keys);
        if left > 0 {
            self.len[first] = left as u32;
            cells.insert(0, cell);
        }
        let largest = cells.iter().copied().rev().max_by_key(|&cell| self.len[cell as usize]);
        for cell in cells.into_iter().filter(|&cell| waited || Some(cell) != largest) {
            if !std::mem::replace(&mut waits[cell as usize], true) {
                open.push_back(cell);
            }
        }
    }
}
