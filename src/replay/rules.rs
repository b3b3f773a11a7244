//! The allocator's rules for the size of a block, and the settings they depend on.

use serde_json::Value;

use super::padding::NPU;

/// All sizes are multiples of this, and none is smaller.
const SMALLEST: i64 = 512;
/// The largest block of the small pool, and the largest rest that a block of the large pool keeps.
pub(super) const SMALL: i64 = 1 << 20;
/// Bytes of a segment of the small pool. Where only an event tells of a segment, a larger one is of the large pool.
pub(crate) const SMALL_SEGMENT: i64 = 2 << 20;

/// How requests are rounded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rounding {
    /// Bytes added to a request first.
    pub(super) padding: i64,
    /// Steps between two powers of two, by power from 1 MiB on; empty where all are off.
    divisions: Vec<i64>,
}

impl Rounding {
    /// Rounding without settings, with so many bytes added first.
    pub(super) fn padded(padding: i64) -> Self {
        Self { padding, divisions: Vec::new() }
    }

    /// The size a request is rounded to.
    pub(super) fn round(&self, request: i64) -> i64 {
        let size = request.saturating_add(self.padding);
        if size <= SMALLEST {
            return SMALLEST;
        }
        match self.divisions_of(size) {
            steps if steps > 1 && size > SMALLEST.saturating_mul(steps) => round_to_division(size, steps),
            _ => size.saturating_add(SMALLEST - 1) / SMALLEST * SMALLEST,
        }
    }

    /// Whether a request is rounded to more than a small block. None that is smaller is, because no step to round to lies behind
    /// a power of two.
    pub(super) fn is_large(&self, request: i64) -> bool {
        request.saturating_add(self.padding) > SMALL
    }

    fn divisions_of(&self, size: i64) -> i64 {
        let power = usize::try_from(size.ilog2().saturating_sub(SMALL.ilog2())).unwrap_or_default();
        let last = self.divisions.len().saturating_sub(1);
        self.divisions.get(power.min(last)).copied().unwrap_or_default()
    }
}

/// The next of `steps` equal steps between two powers of two.
fn round_to_division(size: i64, steps: i64) -> i64 {
    let floor = 1_i64 << size.ilog2();
    let step = floor >> steps.ilog2();
    if size == floor {
        size
    } else if step == 0 {
        floor.saturating_mul(2)
    } else {
        size.saturating_add(step - 1) / step * step
    }
}

/// What is known of the allocator's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) rounding: Rounding,
    /// Bytes added to a request before it is rounded; `None` where nothing shows it.
    pub(super) padding: Option<i64>,
    /// Blocks of this size and more are not split.
    pub(super) max_split_size: Option<i64>,
    /// Whether expandable segments were on at the end.
    pub(super) expandable: bool,
}

impl Rules {
    /// Reads `allocator_settings`; how much padding there is shows elsewhere.
    pub(super) fn new(settings: Option<&str>, padding: Option<i64>) -> Self {
        let settings: Value = settings.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        Self {
            rounding: Rounding { padding: padding.unwrap_or(NPU), divisions: divisions(&settings) },
            padding,
            max_split_size: settings
                .get("max_split_size")
                .and_then(Value::as_i64)
                .filter(|size| (0..i64::MAX).contains(size)),
            expandable: settings.get("expandable_segments").and_then(Value::as_bool).unwrap_or_default(),
        }
    }
}

/// `roundup_power2_divisions`: keys are powers of two in MiB; as a list, the numbers stand in their order. What the user wrote,
/// such as `[256:1,>:8]`, is in another key: the allocator fills in every interval.
fn divisions(settings: &Value) -> Vec<i64> {
    let Some(given) = settings.get("roundup_power2_divisions") else { return Vec::new() };
    let steps_of = |power: usize| match given {
        Value::Array(list) => list.get(power).and_then(Value::as_i64),
        map => map.get((1_u32 << power).to_string()).and_then(Value::as_i64),
    };
    let steps: Vec<i64> = (0..16).map(|power| steps_of(power).unwrap_or_default()).collect();
    if steps.iter().any(|steps| *steps > 1) { steps } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounding(padding: i64, divisions: &[i64]) -> Rounding {
        Rounding { padding, divisions: divisions.to_vec() }
    }

    #[test]
    fn requests_are_rounded_to_512_and_padded_before() {
        let plain = rounding(0, &[]);
        assert_eq!([0, 1, 512, 513, 1 << 20].map(|size| plain.round(size)), [512, 512, 512, 1024, 1 << 20]);
        let padded = rounding(32, &[]);
        assert_eq!([1, 480, 481, 512].map(|size| padded.round(size)), [512, 512, 1024, 1024]);
        assert_eq!(plain.round(i64::MAX), i64::MAX / 512 * 512, "saturates instead of wrapping round");
    }

    #[test]
    fn divisions_cut_the_space_between_two_powers_of_two() {
        // Four steps up to 2 MiB, none from 2 MiB on. With four steps 1200 becomes 1280, but sizes up to 4 * 512 do not.
        let mut steps = vec![0; 16];
        steps[0] = 4;
        let rounding = rounding(0, &steps);
        assert_eq!(rounding.round(1200), 1536);
        assert_eq!(rounding.round(2049), 2560);
        assert_eq!(rounding.round(4096), 4096);
        assert_eq!(rounding.round((1 << 20) + 1), (1 << 20) + (1 << 18));
        assert_eq!(rounding.round((2 << 20) + 1), (2 << 20) + 512);
    }

    #[test]
    fn large_is_what_is_rounded_to_more_than_a_small_block() {
        let mut steps = vec![0; 16];
        steps[0] = 4;
        for rounding in [rounding(0, &[]), rounding(32, &[]), rounding(32, &steps), rounding(0, &[3; 16])] {
            for request in (0..2 * SMALL).step_by(97).chain(SMALL - 40..SMALL + 2).chain([i64::MAX]) {
                assert_eq!(
                    rounding.is_large(request),
                    rounding.round(request) > SMALL,
                    "{request} {rounding:?}"
                );
            }
        }
    }

    #[test]
    fn settings_are_read_by_their_names() {
        let text = r#"{"max_split_size": 104857600, "expandable_segments": true,
                       "roundup_power2_divisions": {"1": 0, "2": 8, "32768": 4}}"#;
        let rules = Rules::new(Some(text), Some(0));
        assert_eq!((rules.max_split_size, rules.expandable), (Some(100 << 20), true));
        let expected: Vec<i64> =
            (0..16).map(|power| [(1, 8), (15, 4)].iter().find(|p| p.0 == power).map_or(0, |p| p.1)).collect();
        assert_eq!(rules.rounding.divisions, expected);
        let text = r#"{"roundup_power2_divisions": [0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]}"#;
        assert_eq!(Rules::new(Some(text), Some(0)).rounding.divisions, expected);
        // What no dump has beside the key is left alone: a text, nothing, and what the user wrote.
        for text in [
            r#"{"roundup_power2_divisions": "[>:8]"}"#,
            r#"{"roundup_power2_divisions": null}"#,
            r#"{"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[>:8]"}"#,
        ] {
            assert_eq!(Rules::new(Some(text), Some(0)).rounding.divisions, [0; 0]);
        }
        let rules = Rules::new(Some(r#"{"max_split_size": -1}"#), Some(0));
        assert_eq!(rules, Rules { padding: Some(0), ..Rules::default() });
    }
}
