//! The program that is simulated, as its call stacks: a made-up trainer on top of PyTorch.
//!
//! Stacks are different by construction: a phase's stack `i` pairs the operator `i % operators` with the module path
//! `i / operators`, and no two paths begin at the same line.

use std::collections::HashMap;

use super::dice::Dice;
use super::event::StackId;
use super::settings::{Frames, Settings};
use super::truth::share;

const TRAIN: &str = "/workspace/train";
const PACKAGES: &str = "/opt/venv/lib/python3.11/site-packages";

/// Modules of the made-up model: class-like name and file.
const MODULES: [(&str, &str); 8] = [
    ("forward", "model/decoder.py"),
    ("forward", "model/attention.py"),
    ("forward", "model/feed_forward.py"),
    ("forward", "model/expert_layer.py"),
    ("forward", "model/rms_norm.py"),
    ("forward", "parallel/sharded_linear.py"),
    ("forward", "parallel/sequence_shard.py"),
    ("route", "model/expert_layer.py"),
];

/// Functions that end in an operator.
const OPERATORS: [(&str, &str); 12] = [
    ("project", "kernels/linear.py"),
    ("attend", "kernels/flash_attention.py"),
    ("rotate", "kernels/rotary.py"),
    ("swiglu", "kernels/activation.py"),
    ("normalise", "kernels/rms_norm.py"),
    ("gather_shards", "parallel/collectives.py"),
    ("scatter_shards", "parallel/collectives.py"),
    ("dispatch_tokens", "kernels/routing.py"),
    ("combine_tokens", "kernels/routing.py"),
    ("lookup", "kernels/embedding.py"),
    ("cross_entropy", "kernels/loss.py"),
    ("cast", "kernels/precision.py"),
];

/// A function at a line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) filename: String,
    pub(super) line: u64,
}

/// Frames and call stacks of the program.
#[derive(Debug)]
pub(super) struct Stacks {
    frames: Vec<Frame>,
    /// Frame numbers, innermost first.
    by_id: Vec<Box<[usize]>>,
    /// Stacks of the forward pass.
    pub(super) forward: Vec<StackId>,
    /// Stacks of the backward pass.
    pub(super) backward: Vec<StackId>,
    /// Stacks of the optimizer.
    pub(super) optimizer: Vec<StackId>,
    /// A C++ thread that no Python function called: no frames at all.
    pub(super) autograd_thread: StackId,
    /// The list that is never emptied.
    pub(super) leak: StackId,
    /// `empty_cache()`.
    pub(super) empty_cache: StackId,
    /// Where tensors die when an exception ends a step, or the program ends.
    pub(super) unwind: StackId,
}

impl Stacks {
    /// Makes up the program.
    pub(super) fn new(settings: &Settings) -> Self {
        Builder::new(settings).build(settings.stack_count)
    }

    /// Frame numbers of a stack, innermost first.
    pub(super) fn stack(&self, id: StackId) -> &[usize] {
        self.by_id.get(id.0).map_or(&[], AsRef::as_ref)
    }

    /// A frame by its number.
    pub(super) fn frame(&self, number: usize) -> Option<&Frame> {
        self.frames.get(number)
    }

    /// How many stacks there are.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How many different frames there are.
    pub(super) fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Frames per stack.
    pub(super) fn mean_depth(&self) -> f64 {
        let frames: usize = self.by_id.iter().map(|stack| stack.len()).sum();
        share(u64::try_from(frames).unwrap_or(0), u64::try_from(self.len()).unwrap_or(0))
    }
}

struct Builder {
    dice: Dice,
    depth: u64,
    native: Frames,
    frames: Vec<Frame>,
    numbers: HashMap<Frame, usize>,
    stacks: Vec<Box<[usize]>>,
}

impl Builder {
    fn new(settings: &Settings) -> Self {
        Self {
            dice: Dice::new(settings.seed, "stacks", 0),
            depth: settings.depth,
            native: settings.frames,
            frames: Vec::new(),
            numbers: HashMap::new(),
            stacks: Vec::new(),
        }
    }

    fn build(mut self, stack_count: u64) -> Stacks {
        let autograd_thread = self.add(Vec::new());
        let root = self.root();
        let forward = self.phase(stack_count * 45 / 100, |builder, path, operator| {
            let (name, file) = operator_at(operator);
            let mut stack = vec![builder.frame(name, TRAIN, file, 30 + operator + 12 * (path % 6))];
            stack.extend(builder.modules(path));
            stack.push(builder.frame("forward_pass", TRAIN, "loop.py", 203));
            stack.extend(&root);
            stack
        });
        let backward = self.phase(stack_count * 35 / 100, |builder, path, operator| {
            let (_, file) = operator_at(operator);
            let mut stack = vec![builder.frame("backward", TRAIN, file, 400 + operator + 12 * (path % 5))];
            if path % 3 == 0 {
                // Recomputed activations: a forward pass inside the backward pass.
                stack.extend(builder.modules(path));
                stack.push(builder.frame("recompute", TRAIN, "model/checkpointing.py", 88));
            } else {
                stack.push(builder.frame("backward", TRAIN, "model/decoder.py", 300 + path));
            }
            stack.extend([
                builder.frame("apply", PACKAGES, "torch/autograd/function.py", 311),
                builder.frame("_engine_run_backward", PACKAGES, "torch/autograd/graph.py", 829),
                builder.frame("backward", PACKAGES, "torch/_tensor.py", 648),
                builder.frame("backward_pass", TRAIN, "loop.py", 221),
            ]);
            stack.extend(&root);
            stack
        });
        let optimizer = self.phase(stack_count.div_ceil(5), |builder, path, operator| {
            let mut stack = vec![
                builder.frame("fused_update", TRAIN, "optim/adamw.py", 60 + operator),
                builder.frame("update_group", TRAIN, "optim/adamw.py", 130 + path),
                builder.frame("step", TRAIN, "optim/sharded.py", 97 + path % 4),
                builder.frame("optimizer_step", TRAIN, "loop.py", 236),
            ];
            stack.extend(&root);
            stack
        });
        let leak =
            self.special(&root, &[("remember_loss", "metrics.py", 74), ("after_step", "metrics.py", 41)]);
        let empty_cache = self.special(&root, &[("release_memory", "loop.py", 262)]);
        let unwind = self.special(&root, &[("abandon_step", "loop.py", 274)]);
        Stacks {
            frames: self.frames,
            by_id: self.stacks,
            forward,
            backward,
            optimizer,
            autograd_thread,
            leak,
            empty_cache,
            unwind,
        }
    }

    /// From the training step to the bottom of the program.
    fn root(&mut self) -> Vec<usize> {
        vec![
            self.frame("training_step", TRAIN, "loop.py", 187),
            self.frame("fit", TRAIN, "loop.py", 118),
            self.frame("main", TRAIN, "main.py", 52),
            self.frame("<module>", TRAIN, "main.py", 61),
        ]
    }

    /// `count` different stacks, at least one.
    fn phase(&mut self, count: u64, stack: impl Fn(&mut Self, u64, u64) -> Vec<usize>) -> Vec<StackId> {
        let operators = u64::try_from(OPERATORS.len()).unwrap_or(1);
        (0..count.max(1))
            .map(|number| {
                let frames = stack(self, number / operators, number % operators);
                self.add(frames)
            })
            .collect()
    }

    fn special(&mut self, root: &[usize], functions: &[(&str, &str, u64)]) -> StackId {
        let mut stack: Vec<usize> =
            functions.iter().map(|(name, file, line)| self.frame(name, TRAIN, file, *line)).collect();
        stack.extend(root);
        self.add(stack)
    }

    /// Modules around an operator. The outermost one's line tells the paths apart; those inside vary with the dice, but
    /// are the same each time a path is asked for.
    fn modules(&mut self, path: u64) -> Vec<usize> {
        let mut dice = Dice::new(self.dice.clone().below(u64::MAX), "path", path);
        let inner = dice.below(self.depth.max(1));
        let mut stack = Vec::new();
        for _ in 0..inner {
            let (name, file) = dice.pick(&MODULES).copied().unwrap_or(("forward", "model/decoder.py"));
            let line = 50 + 3 * dice.below(80);
            stack.push(self.frame(name, TRAIN, file, line));
            stack.extend(self.call());
        }
        stack.push(self.frame("forward", TRAIN, "model/decoder.py", 160 + path));
        stack.extend(self.call());
        stack
    }

    /// How a module calls another.
    fn call(&mut self) -> [usize; 2] {
        [
            self.frame("_call_impl", PACKAGES, "torch/nn/modules/module.py", 1784),
            self.frame("_wrapped_call_impl", PACKAGES, "torch/nn/modules/module.py", 1773),
        ]
    }

    fn frame(&mut self, name: &str, folder: &str, file: &str, line: u64) -> usize {
        self.number(Frame { name: name.to_owned(), filename: format!("{folder}/{file}"), line })
    }

    fn number(&mut self, frame: Frame) -> usize {
        if let Some(number) = self.numbers.get(&frame) {
            return *number;
        }
        let number = self.frames.len();
        self.frames.push(frame.clone());
        self.numbers.insert(frame, number);
        number
    }

    fn add(&mut self, python: Vec<usize>) -> StackId {
        let mut stack = match self.native {
            Frames::Python => Vec::new(),
            Frames::All => self.native_frames(),
        };
        stack.extend(python);
        let id = StackId(self.stacks.len());
        self.stacks.push(stack.into());
        id
    }

    /// C++ functions in front of the Python ones: long names, often without a file.
    fn native_frames(&mut self) -> Vec<usize> {
        let first = self.dice.below(2400);
        let count = self.dice.between(12, 28);
        (first..first + count)
            .map(|number| {
                let name = match number % 3 {
                    0 => format!("at::_ops::train_op_{number}::call(at::Tensor const&, c10::SymInt, bool)"),
                    1 => format!(
                        "c10::impl::wrap_kernel_functor_unboxed_<train::Kernel{number}, at::Tensor (at::Tensor const&, \
                         at::Tensor const&)>::call(c10::OperatorKernel*, c10::DispatchKeySet, at::Tensor const&, \
                         at::Tensor const&)"
                    ),
                    _ => format!("train::autograd::Node{number}::apply(std::vector<at::Tensor>&&)"),
                };
                let (filename, line) = match number % 2 {
                    0 => ("??".to_owned(), 0),
                    _ => (format!("/build/csrc/ops/Op{}.cpp", number / 6), 20 + number % 800),
                };
                self.number(Frame { name, filename, line })
            })
            .collect()
    }
}

fn operator_at(number: u64) -> (&'static str, &'static str) {
    let place = usize::try_from(number).map_or(0, |number| number % OPERATORS.len());
    OPERATORS.get(place).copied().unwrap_or(("project", "kernels/linear.py"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::snapshot::synth::tests::settings;

    #[test]
    fn stacks_are_different_whatever_their_number_and_depth() {
        for (stack_count, depth) in [(1, 1), (24, 1), (3000, 8), (20_000, 2)] {
            let stacks = Stacks::new(&Settings { stack_count, depth, ..settings() });
            let distinct: HashSet<&[usize]> = (0..stacks.len()).map(|id| stacks.stack(StackId(id))).collect();
            assert_eq!(distinct.len(), stacks.len());
            assert!(u64::try_from(stacks.len()).unwrap() >= stack_count);
        }
    }

    #[test]
    fn native_frames_stand_in_front_of_python_ones() {
        let stacks = Stacks::new(&Settings { frames: Frames::All, ..settings() });
        let stack = stacks.stack(stacks.forward[0]);
        assert!(stacks.frame(stack[0]).unwrap().name.contains("::"));
        assert_eq!(stacks.frame(*stack.last().unwrap()).unwrap().name, "<module>");
    }
}
