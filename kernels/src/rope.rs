//! Rotary position embedding.

use crate::shared::Parts;
use crate::{Cpu, KernelError};

/// Which dimensions of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopeStyle {
    /// 2i and 2i+1, as in GGUF files of the llama family.
    Interleaved,
    /// i and half+i, as in Qwen.
    Half,
}

/// How fast each pair of dimensions turns.
#[derive(Debug, Clone)]
pub struct Rope {
    style: RopeStyle,
    /// Radians a position, for each pair.
    speeds: Vec<f64>,
}

impl Rope {
    /// Pairs of the first `rotary_dim` dimensions turn by `base^(-2i/rotary_dim)` a position. `factors`, one for each
    /// pair, divide that (the `rope_freqs` tensor of Llama 3 files); `position_scale` multiplies positions (linear
    /// context extension; 1 for none).
    ///
    /// # Errors
    /// [`KernelError::BadShape`] when `rotary_dim` is odd or zero, when `factors` has another length, or when a number is
    /// not finite and positive.
    pub fn new(
        style: RopeStyle,
        rotary_dim: usize,
        base: f32,
        position_scale: f32,
        factors: Option<&[f32]>,
    ) -> Result<Rope, KernelError> {
        let wrong = KernelError::BadShape { what: "a rotary embedding" };
        let pairs = rotary_dim / 2;
        let factors_fit = factors.is_none_or(|f| f.len() == pairs);
        if rotary_dim == 0 || !rotary_dim.is_multiple_of(2) || !factors_fit {
            return Err(wrong);
        }
        let speed = |pair: usize| {
            let turn = f64::from(base).powf(-2.0 * pair as f64 / rotary_dim as f64);
            f64::from(position_scale) * turn / factors.map_or(1.0, |f| f64::from(f[pair]))
        };
        let speeds: Vec<f64> = (0..pairs).map(speed).collect();
        let sound = speeds.iter().all(|s| s.is_finite() && *s > 0.0);
        if sound { Ok(Rope { style, speeds }) } else { Err(wrong) }
    }

    /// Dimensions that turn; the rest of a head is left alone.
    pub fn rotary_dim(&self) -> usize {
        2 * self.speeds.len()
    }
}

/// Cosines and sines for the positions of one step: computed once, used by queries and keys of every layer.
#[derive(Debug, Default)]
pub struct Angles {
    tokens: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Angles {
    /// Computes them for one position a token; earlier content is replaced.
    pub fn set(&mut self, rope: &Rope, positions: &[u32]) {
        self.tokens = positions.len();
        self.cos.clear();
        self.sin.clear();
        for position in positions {
            for speed in &rope.speeds {
                // In 64 bits: at position 100,000 a 32-bit angle is off by a hundredth of a radian.
                let (sin, cos) = (f64::from(*position) * speed).sin_cos();
                self.cos.push(cos as f32);
                self.sin.push(sin as f32);
            }
        }
    }
}

impl Cpu {
    /// Turns `x`, `[tokens, heads, head_dim]`, to `positions`, one a token. Panics on other sizes.
    pub fn rope(&self, x: &mut [f32], heads: usize, head_dim: usize, positions: &[u32], rope: &Rope) {
        let mut angles = Angles::default();
        angles.set(rope, positions);
        self.rope_with(x, heads, head_dim, rope, &angles);
    }

    /// The same with angles computed before.
    pub fn rope_with(&self, x: &mut [f32], heads: usize, head_dim: usize, rope: &Rope, angles: &Angles) {
        let (pairs, width) = (rope.speeds.len(), heads * head_dim);
        assert!(2 * pairs <= head_dim, "{} rotary dimensions in a head of {head_dim}", 2 * pairs);
        assert_eq!(x.len(), angles.tokens * width, "{} tokens of {heads} heads of {head_dim}", angles.tokens);
        assert_eq!(angles.cos.len(), angles.tokens * pairs, "angles of another rotary embedding");
        let x = Parts::new(x);
        self.for_rows(angles.tokens, width, &|tokens| {
            for token in tokens {
                let cos = &angles.cos[token * pairs..][..pairs];
                let sin = &angles.sin[token * pairs..][..pairs];
                // SAFETY: each token is visited by one task.
                let x = unsafe { x.slice(token * width, width) };
                for head in x.chunks_exact_mut(head_dim) {
                    self.rotate(rope.style, &mut head[..2 * pairs], cos, sin);
                }
            }
        });
    }

    fn rotate(&self, style: RopeStyle, head: &mut [f32], cos: &[f32], sin: &[f32]) {
        match style {
            RopeStyle::Interleaved => self.kernels().rotate_pairs(head, cos, sin),
            RopeStyle::Half => {
                let (low, high) = head.split_at_mut(cos.len());
                self.kernels().rotate_halves(low, high, cos, sin);
            }
        }
    }
}
