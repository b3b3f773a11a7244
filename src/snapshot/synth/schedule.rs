//! What one training step does with memory, as a list of operations that every step of its kind repeats.
//!
//! Forward activations live until the backward pass reaches their layer; temporaries die at once; gradients are
//! reduced on a second stream; the optimizer allocates and frees within itself.

use super::allocator::Release;
use super::dice::Dice;
use super::event::{StackId, Stream};
use super::stacks::Stacks;

/// The stream that kernels run on.
pub(super) const COMPUTE: Stream = Stream(0);
/// The stream that collectives run on.
pub(super) const COLLECTIVE: Stream = Stream(1);

/// A tensor of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot(pub(super) usize);

/// One thing a step does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    Allocate {
        slot: Slot,
        size: u64,
        stream: Stream,
        stack: StackId,
    },
    Free {
        slot: Slot,
        release: Release,
        stack: StackId,
    },
    /// The backward pass is over.
    OptimizerBegins,
}

/// The operations of a step.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) operations: Vec<Operation>,
    pub(super) slots: usize,
}

impl Schedule {
    /// Plans a step of a model with so many layers.
    pub(super) fn new(dice: &mut Dice, stacks: &Stacks, layers: u64) -> Self {
        let mut schedule = Self::default();
        let mut saved = Vec::new();
        for layer in 0..layers {
            schedule.forward(dice, stacks, layer, &mut saved);
        }
        schedule.backward(dice, stacks, saved);
        schedule.operations.push(Operation::OptimizerBegins);
        schedule.optimizer(dice, stacks, layers);
        schedule
    }

    fn forward(&mut self, dice: &mut Dice, stacks: &Stacks, layer: u64, saved: &mut Vec<Slot>) {
        let mut temporaries = Vec::new();
        for _ in 0..dice.between(8, 14) {
            let size = tensor_size(dice);
            let slot = self.allocate(size, COMPUTE, any(dice, &stacks.forward));
            let kept = if dice.percent(45) { &mut *saved } else { &mut temporaries };
            kept.push(slot);
            while dice.percent(40) {
                let Some(slot) = take_any(dice, &mut temporaries) else { break };
                self.free(slot, Release::AtOnce, any(dice, &stacks.forward));
            }
        }
        if layer % 3 == 2 {
            // Gathered shards: made on the stream of collectives, used on the other.
            let gathered = self.allocate(dice.magnitude(21, 25), COLLECTIVE, any(dice, &stacks.forward));
            self.free(gathered, Release::Later, any(dice, &stacks.forward));
        }
        for slot in temporaries {
            self.free(slot, Release::AtOnce, any(dice, &stacks.forward));
        }
    }

    fn backward(&mut self, dice: &mut Dice, stacks: &Stacks, saved: Vec<Slot>) {
        let mut gradients = Vec::new();
        for activation in saved.into_iter().rev() {
            let stack = if dice.percent(12) { stacks.autograd_thread } else { any(dice, &stacks.backward) };
            for _ in 0..dice.between(1, 3) {
                let size = tensor_size(dice);
                gradients.push(self.allocate(size, COMPUTE, stack));
            }
            self.free(activation, Release::AtOnce, stack);
            while gradients.len() > 5 {
                let Some(gradient) = take_any(dice, &mut gradients) else { break };
                let release = if dice.percent(8) { Release::Later } else { Release::AtOnce };
                self.free(gradient, release, any(dice, &stacks.backward));
            }
        }
        for gradient in gradients {
            self.free(gradient, Release::AtOnce, any(dice, &stacks.backward));
        }
    }

    fn optimizer(&mut self, dice: &mut Dice, stacks: &Stacks, layers: u64) {
        let mut previous = None;
        for _ in 0..layers * 3 {
            let update = self.allocate(dice.magnitude(9, 22), COMPUTE, any(dice, &stacks.optimizer));
            if let Some(slot) = previous.replace(update) {
                self.free(slot, Release::AtOnce, any(dice, &stacks.optimizer));
            }
        }
        if let Some(slot) = previous {
            self.free(slot, Release::AtOnce, any(dice, &stacks.optimizer));
        }
    }

    fn allocate(&mut self, size: u64, stream: Stream, stack: StackId) -> Slot {
        let slot = Slot(self.slots);
        self.slots += 1;
        self.operations.push(Operation::Allocate { slot, size, stream, stack });
        slot
    }

    fn free(&mut self, slot: Slot, release: Release, stack: StackId) {
        self.operations.push(Operation::Free { slot, release, stack });
    }
}

/// Bytes of a tensor: scalars, small ones, and large ones whose dimensions are multiples of 64.
pub(super) fn tensor_size(dice: &mut Dice) -> u64 {
    match dice.below(100) {
        0..15 => 4 * dice.between(1, 127),
        15..50 => dice.magnitude(9, 20) / 4 * 4,
        50..82 => dice.magnitude(20, 23) / 8192 * 8192,
        _ => dice.magnitude(23, 26) / 8192 * 8192,
    }
}

/// One of the program's places.
pub(super) fn any(dice: &mut Dice, stacks: &[StackId]) -> StackId {
    dice.pick(stacks).copied().unwrap_or(StackId(0))
}

fn take_any(dice: &mut Dice, slots: &mut Vec<Slot>) -> Option<Slot> {
    let place = dice.below(u64::try_from(slots.len()).ok()?);
    let place = usize::try_from(place).ok()?;
    (place < slots.len()).then(|| slots.swap_remove(place))
}
