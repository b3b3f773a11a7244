//! Memory outside the allocator's pool, by component of the driver's account; shown by overview and used by oom.

use serde_json::{Value, json};

use super::language::Text;
use super::outcome::{Cell, TableFigure};
use crate::engine::row;
use crate::quantity;

/// Components that a sentence names.
const NAMED: usize = 3;

row! {
    /// A component of the driver's account of a device.
    pub struct OutsidePool from "memory_outside_pool" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Component, as the driver calls it.
        component: String,
        /// Bytes it held.
        bytes: Option<i64>,
        /// The most bytes it held.
        peak_bytes: Option<i64>,
        /// Of the bytes, what the snapshot's segments account for.
        pool_bytes: Option<i64>,
        /// The rest of them.
        outside_bytes: Option<i64>,
        /// File that says so.
        source_name: String,
    }
}

impl OutsidePool {
    fn outside(&self) -> i64 {
        self.outside_bytes.unwrap_or_default()
    }

    fn json(&self) -> Value {
        json!({
            "component": self.component,
            "bytes": self.bytes,
            "peak_bytes": self.peak_bytes,
            "pool_bytes": self.pool_bytes,
            "outside_bytes": self.outside_bytes,
            "source_name": self.source_name,
        })
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::name(self.device_index.to_string()),
            Cell::name(self.component.clone()),
            Cell::bytes(self.outside_bytes),
            Cell::bytes(self.bytes),
            Cell::bytes(self.peak_bytes),
            Cell::name(self.source_name.clone()),
        ]
    }
}

/// The components of one device, those with most outside the pool first.
#[derive(Debug, Clone, Default)]
pub(super) struct Components(Vec<OutsidePool>);

impl Components {
    /// Those of `device` among `rows`.
    pub(super) fn of(device: i64, rows: &[OutsidePool]) -> Self {
        Self(rows.iter().filter(|row| row.device_index == device).cloned().collect())
    }

    /// Bytes outside the pool; `None` where no file tells.
    pub(super) fn bytes(&self) -> Option<i64> {
        let sum = self.0.iter().fold(0_i64, |sum, row| sum.saturating_add(row.outside()));
        (!self.0.is_empty()).then_some(sum)
    }

    /// The component with the most, and its bytes.
    pub(super) fn largest(&self) -> Option<(&str, i64)> {
        let largest = self.0.iter().filter(|row| row.outside() > 0).max_by_key(|row| row.outside())?;
        Some((&largest.component, largest.outside()))
    }

    /// The largest components with their bytes; empty where nothing is outside the pool.
    pub(super) fn named(&self) -> Text {
        let mut held: Vec<&OutsidePool> = self.0.iter().filter(|row| row.outside() > 0).collect();
        held.sort_by_key(|row| std::cmp::Reverse(row.outside()));
        let named: Vec<String> = held
            .iter()
            .take(NAMED)
            .map(|row| format!("{} {}", row.component, quantity::bytes(row.outside())))
            .collect();
        let (more_en, more_zh) = if held.len() > NAMED { (" and others", " 等") } else { ("", "") };
        Text::new(format!("{}{more_en}", named.join(", ")), format!("{}{more_zh}", named.join("、")))
    }

    /// `outside_pool` of a device or an event; `None` where no file tells.
    pub(super) fn json(&self) -> Option<Value> {
        let largest = self.largest().map(|(component, _)| component);
        let components: Vec<Value> = self.0.iter().map(OutsidePool::json).collect();
        self.bytes().map(|bytes| json!({ "bytes": bytes, "largest": largest, "components": components }))
    }
}

/// All components of all devices; `None` where no file tells.
pub(super) fn table(rows: &[OutsidePool]) -> Option<TableFigure> {
    let headings = [
        ("device", "设备"),
        ("component", "组件"),
        ("outside the pool", "池外占用"),
        ("by the driver", "驱动统计"),
        ("peak", "峰值"),
        ("file", "文件"),
    ];
    (!rows.is_empty()).then(|| {
        TableFigure::new(
            Text::new("Memory outside the pool, by component", "内存池之外的占用（按组件）"),
            &headings,
            rows.iter().map(OutsidePool::cells).collect(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Lang;

    fn row(device_index: i64, component: &str, outside_bytes: Option<i64>) -> OutsidePool {
        OutsidePool {
            device_index,
            component: component.to_owned(),
            bytes: outside_bytes,
            peak_bytes: outside_bytes,
            pool_bytes: outside_bytes.map(|_| 0),
            outside_bytes,
            source_name: String::new(),
        }
    }

    #[test]
    fn components_are_added_up_by_device_and_the_largest_are_named() {
        let rows = [
            row(0, "HCCL", Some(3 << 30)),
            row(0, "RUNTIME", Some(1 << 20)),
            row(0, "DVPP", None),
            row(0, "SLOG", Some(2 << 20)),
            row(0, "GE", Some(1 << 10)),
            row(1, "APP", Some(5 << 30)),
        ];
        let components = Components::of(0, &rows);
        assert_eq!(components.bytes(), Some((3 << 30) + (3 << 20) + (1 << 10)));
        assert_eq!(components.largest(), Some(("HCCL", 3 << 30)));
        assert_eq!(
            components.named().get(Lang::En),
            "HCCL 3.00 GiB, SLOG 2.00 MiB, RUNTIME 1.00 MiB and others"
        );
        let none = Components::of(7, &rows);
        assert_eq!((none.bytes(), none.largest(), none.json()), (None, None, None));
    }
}
