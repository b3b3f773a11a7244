//! Runs the made-up program of one device over its allocator until the settings say that it is enough.

use std::io;

use super::allocator::{Allocator, Release};
use super::dice::Dice;
use super::event::{Recorder, StackId, Stop};
use super::schedule::{COMPUTE, Operation, Schedule, Slot, any};
use super::settings::{Length, Settings};
use super::stacks::Stacks;

/// Kinds of steps: what happens with sequences of one length.
const KINDS: u64 = 4;
/// Sizes of the batches, in eighths of the usual one.
const BATCHES: [u64; 6] = [8, 8, 8, 6, 9, 4];

/// What the devices run.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) stacks: Stacks,
    schedules: Vec<Schedule>,
}

impl Program {
    /// Makes up a program.
    pub(super) fn new(settings: &Settings) -> Self {
        let stacks = Stacks::new(settings);
        let mut dice = Dice::new(settings.seed, "schedules", 0);
        let schedules = (0..KINDS).map(|_| Schedule::new(&mut dice, &stacks, settings.layers)).collect();
        Self { stacks, schedules }
    }
}

/// A named range of the program's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Annotation {
    pub(super) begin_us: u64,
    pub(super) end_us: u64,
}

/// How a device's run ended.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) allocator: Allocator,
    pub(super) annotations: Vec<Annotation>,
}

/// Runs the program on one device.
///
/// # Errors
/// The recorder failed.
pub(super) fn run(
    settings: &Settings,
    program: &Program,
    device: u64,
    recorder: &mut dyn Recorder,
) -> io::Result<Run> {
    let mut training = Training {
        settings,
        program,
        recorder,
        allocator: Allocator::new(settings, device),
        dice: Dice::new(settings.seed, "training", device),
        budget: settings.event_budget(device),
        parameters: Vec::new(),
        kept: Vec::new(),
        slots: Vec::new(),
        annotations: Vec::new(),
        marked: false,
    };
    match training.run() {
        Ok(()) | Err(Stop::Full | Stop::OutOfMemory) => {}
        Err(Stop::Failed(error)) => return Err(error),
    }
    match training.end() {
        Ok(()) | Err(Stop::Full | Stop::OutOfMemory) => {}
        Err(Stop::Failed(error)) => return Err(error),
    }
    Ok(Run { allocator: training.allocator, annotations: training.annotations })
}

struct Training<'a> {
    settings: &'a Settings,
    program: &'a Program,
    recorder: &'a mut dyn Recorder,
    allocator: Allocator,
    dice: Dice,
    budget: Option<u64>,
    parameters: Vec<u64>,
    /// What the leak keeps.
    kept: Vec<u64>,
    /// Tensors of the step that runs.
    slots: Vec<Option<u64>>,
    annotations: Vec<Annotation>,
    marked: bool,
}

impl Training<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        let mut step = 0;
        while !self.is_over(step) {
            if step == 0 {
                self.make_parameters()?;
            }
            match self.step(step) {
                Err(Stop::OutOfMemory) => self.abandon_step()?,
                other => other?,
            }
            step += 1;
            self.mark_snapshot(step)?;
            if step.is_multiple_of(self.settings.empty_cache_every.max(1)) {
                self.allocator.empty_cache(self.recorder, self.program.stacks.empty_cache)?;
            }
        }
        Ok(())
    }

    fn is_over(&self, step: u64) -> bool {
        match (self.settings.length, self.budget) {
            (Length::Steps(steps), _) => step >= steps,
            (Length::Events(_), budget) => self.allocator.events >= budget.unwrap_or(0),
        }
    }

    fn make_parameters(&mut self) -> Result<(), Stop> {
        for _ in 0..self.settings.layers * 6 {
            let size = self.dice.magnitude(9, 25) / 512 * 512;
            let stack = any(&mut self.dice, &self.program.stacks.forward);
            let parameter = self.malloc(size, stack)?;
            self.parameters.push(parameter);
        }
        Ok(())
    }

    fn step(&mut self, step: u64) -> Result<(), Stop> {
        let program = self.program;
        // The first kind comes back regularly, as the longest sequences do.
        let schedule = if step.is_multiple_of(4) {
            program.schedules.first()
        } else {
            self.dice.pick(&program.schedules)
        };
        let Some(schedule) = schedule else { return Ok(()) };
        let batch = self.dice.pick(&BATCHES).copied().unwrap_or(8);
        self.slots.clear();
        self.slots.resize(schedule.slots, None);
        let mut optimizer_began = self.allocator.time_us;
        for operation in &schedule.operations {
            self.check_budget()?;
            match *operation {
                Operation::Allocate { slot, size, stream, stack } => {
                    let size = (size * batch / 8).max(1);
                    let address = self.allocator.malloc(self.recorder, size, stream, stack)?;
                    self.put(slot, address);
                }
                Operation::Free { slot, release, stack } => {
                    if let Some(address) = self.take(slot) {
                        self.allocator.free(self.recorder, address, stack, release)?;
                    }
                }
                Operation::OptimizerBegins => {
                    optimizer_began = self.allocator.time_us;
                    if step == 0 {
                        self.make_optimizer_state()?;
                    }
                }
            }
        }
        self.annotations.push(Annotation { begin_us: optimizer_began, end_us: self.allocator.time_us });
        if self.settings.leak && step > 0 {
            for part in 0..2 {
                let kept = self.malloc(192 * 1024 + 2048 * (step % 5) + 512 * part, program.stacks.leak)?;
                self.kept.push(kept);
            }
        }
        Ok(())
    }

    /// Moments of the optimizer, made when it first runs.
    fn make_optimizer_state(&mut self) -> Result<(), Stop> {
        for _ in 0..self.settings.layers * 4 {
            let size = self.dice.magnitude(12, 25) / 512 * 512;
            let stack = any(&mut self.dice, &self.program.stacks.optimizer);
            let state = self.malloc(size, stack)?;
            self.parameters.push(state);
        }
        Ok(())
    }

    /// An exception went through the step: its tensors die.
    fn abandon_step(&mut self) -> Result<(), Stop> {
        let unwind = self.program.stacks.unwind;
        for address in std::mem::take(&mut self.slots).into_iter().flatten() {
            self.allocator.free(self.recorder, address, unwind, Release::AtOnce)?;
        }
        Ok(())
    }

    /// Somebody takes a snapshot after 60 % of the run, which leaves a marker in the trace.
    fn mark_snapshot(&mut self, step: u64) -> Result<(), Stop> {
        let (done, all) = match self.settings.length {
            Length::Steps(steps) => (step, steps),
            Length::Events(_) => (self.allocator.events, self.budget.unwrap_or(0)),
        };
        if !self.marked && done * 10 >= all * 6 {
            self.marked = true;
            self.allocator.mark_snapshot(self.recorder)?;
        }
        Ok(())
    }

    /// What the settings want to happen behind the last step.
    fn end(&mut self) -> Result<(), Stop> {
        if self.allocator.events == 0 {
            return Ok(());
        }
        if self.settings.teardown {
            self.abandon_step()?;
            let unwind = self.program.stacks.unwind;
            for address in
                std::mem::take(&mut self.parameters).into_iter().chain(std::mem::take(&mut self.kept))
            {
                self.allocator.free(self.recorder, address, unwind, Release::AtOnce)?;
            }
            self.allocator.synchronize(self.recorder)?;
        }
        if self.settings.oom {
            loop {
                // A batch that does not fit: activations of 3 to 8 % of the device each.
                let size = self.settings.capacity / 1000 * self.dice.between(30, 80);
                let stack = any(&mut self.dice, &self.program.stacks.forward);
                self.allocator.malloc(self.recorder, size.max(1), COMPUTE, stack)?;
            }
        }
        Ok(())
    }

    fn malloc(&mut self, size: u64, stack: StackId) -> Result<u64, Stop> {
        self.check_budget()?;
        self.allocator.malloc(self.recorder, size, COMPUTE, stack)
    }

    fn check_budget(&self) -> Result<(), Stop> {
        if self.budget.is_some_and(|budget| self.allocator.events >= budget) {
            Err(Stop::Full)
        } else {
            Ok(())
        }
    }

    fn put(&mut self, slot: Slot, address: u64) {
        if let Some(place) = self.slots.get_mut(slot.0) {
            *place = Some(address);
        }
    }

    fn take(&mut self, slot: Slot) -> Option<u64> {
        self.slots.get_mut(slot.0)?.take()
    }
}
