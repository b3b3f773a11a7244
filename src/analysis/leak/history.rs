//! How much history a judgement on growth rests on, and what is said where it is too little.

use super::DeviceLeak;
use crate::analysis::language::Text;
use crate::analysis::outcome::{Finding, Quantity, Severity};
use crate::analysis::thresholds::Thresholds;
use crate::quantity;

impl DeviceLeak {
    pub(super) fn event_count(&self) -> i64 {
        self.steps.as_ref().map_or(0, |steps| steps.event_count)
    }

    pub(super) fn step_count(&self) -> i64 {
        self.steps.as_ref().map_or(0, |steps| steps.step_count)
    }

    pub(super) fn interval_count(&self) -> i64 {
        self.steps.as_ref().map_or(0, |steps| steps.interval_count)
    }

    pub(super) fn is_by_steps(&self) -> bool {
        let origin = self.steps.as_ref().and_then(|steps| steps.origin.as_deref());
        matches!(origin, Some("inferred" | "annotation"))
    }

    pub(super) fn no_history(&self) -> Finding {
        Finding::on_device(
            self.device_index,
            "leak/no_history",
            Severity::Info,
            Text::new(
                "no events were recorded here: what is alive is known, but not whether it keeps growing",
                "此设备没有记录事件：只知道哪些内存存活，无法判断是否持续增长",
            ),
            vec![("live_bytes", Quantity::Bytes(Some(self.live_size)))],
        )
    }

    /// Says so where the history is too short, or has no steps, to tell a leak from a warm-up.
    pub(super) fn short(&self, thresholds: &Thresholds) -> Option<Finding> {
        if self.interval_count() == 0 {
            return Some(self.too_short());
        }
        let steps = quantity::count(self.step_count());
        let needed = format!("{:.0}", thresholds.leak_steps);
        #[expect(
            clippy::cast_precision_loss,
            clippy::as_conversions,
            reason = "a count of steps is far below 2^53"
        )]
        let enough = self.is_by_steps() && self.step_count() as f64 > thresholds.leak_steps;
        if enough {
            return None;
        }
        let message = if self.step_count() > 0 {
            Text::new(
                format!(
                    "only {} in the recorded window, more than {needed} are needed: growth that goes on and a warm-up look \
                     alike",
                    quantity::counted(self.step_count(), "whole step is", "whole steps are"),
                ),
                format!(
                    "记录窗口内只有 {steps} 个完整步骤，需要超过 {needed} 个：持续增长与预热阶段难以区分"
                ),
            )
        } else {
            Text::new(
                "no rhythm of steps is seen in the recorded window: stretches of equal length were compared, which says less",
                "记录窗口内看不出步骤节奏：改为比较等长的时间段，结论较弱",
            )
        };
        Some(Finding::on_device(
            self.device_index,
            "leak/short_history",
            Severity::Info,
            message,
            vec![
                ("step_count", Quantity::Count(self.step_count())),
                ("event_count", Quantity::Count(self.event_count())),
            ],
        ))
    }

    /// Where there are no two moments to compare, nothing is said of growth, and that is no good news.
    fn too_short(&self) -> Finding {
        let count = self.event_count();
        let (events, number) = (quantity::counted(count, "event is", "events are"), quantity::count(count));
        Finding::on_device(
            self.device_index,
            "leak/short_history",
            Severity::Info,
            Text::new(
                format!(
                    "{events} too few to compare anything: what is alive is known, but not whether it keeps growing"
                ),
                format!("仅有 {number} 个事件，不足以进行任何比较：只知道哪些内存存活，无法判断是否持续增长"),
            ),
            vec![
                ("step_count", Quantity::Count(self.step_count())),
                ("event_count", Quantity::Count(count)),
                ("interval_count", Quantity::Count(0)),
            ],
        )
    }
}
