//! Writes GGUF files: sound ones, and on request unsound ones.

/// The quantisations that the writer can encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Quant {
    F32,
    F16,
    Q8_0,
    Q4_0,
    Q4_1,
}

impl Quant {
    /// Its number in GGUF.
    pub fn id(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q8_0 => 8,
        }
    }

    /// Encodes values; for the quantised ones their number must be a multiple of 32.
    pub fn encode(self, values: &[f32]) -> Vec<u8> {
        let half = |x: f32| half::f16::from_f32(x).to_le_bytes();
        match self {
            Self::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::F16 => values.iter().flat_map(|&x| half(x)).collect(),
            Self::Q8_0 => values.chunks(32).flat_map(q8_0).collect(),
            Self::Q4_0 => values.chunks(32).flat_map(q4_0).collect(),
            Self::Q4_1 => values.chunks(32).flat_map(q4_1).collect(),
        }
    }
}

fn rounded(x: f32) -> (f32, [u8; 2]) {
    let half = half::f16::from_f32(x);
    (half.to_f32(), half.to_le_bytes())
}

fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

fn q8_0(block: &[f32]) -> Vec<u8> {
    let largest = block.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    let (scale, bytes) = rounded(largest / 127.0);
    let code = |x: &f32| (x * inverse(scale)).round().clamp(-127.0, 127.0) as i8 as u8;
    bytes.into_iter().chain(block.iter().map(code)).collect()
}

fn q4_0(block: &[f32]) -> Vec<u8> {
    let largest = block.iter().fold(0.0f32, |m, &x| if x.abs() > m.abs() { x } else { m });
    let (scale, bytes) = rounded(largest / -8.0);
    let code = |x: f32| (x * inverse(scale) + 8.5).clamp(0.0, 15.0) as u8;
    bytes.into_iter().chain(nibbles(block, code)).collect()
}

fn q4_1(block: &[f32]) -> Vec<u8> {
    let (least, most) = block.iter().fold((f32::MAX, f32::MIN), |(a, b), &x| (a.min(x), b.max(x)));
    let ((scale, scale_bytes), (least, least_bytes)) = (rounded((most - least) / 15.0), rounded(least));
    let code = |x: f32| ((x - least) * inverse(scale) + 0.5).clamp(0.0, 15.0) as u8;
    scale_bytes.into_iter().chain(least_bytes).chain(nibbles(block, code)).collect()
}

/// Values i and i + 16 share a byte.
fn nibbles(block: &[f32], code: impl Fn(f32) -> u8) -> Vec<u8> {
    (0..16).map(|i| code(block[i]) | code(block[i + 16]) << 4).collect()
}

/// A tensor to be written: its description and its bytes, which need not agree.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its shape, fastest axis first.
    pub shape: Vec<u64>,
    /// GGUF's number of its quantisation.
    pub quantisation: u32,
    /// Its data.
    pub data: Vec<u8>,
    /// Where the description says that the data starts; none for where it does.
    pub offset: Option<u64>,
}

/// A file under construction. Everything is public, to be damaged by tests.
#[derive(Debug, Clone)]
pub struct GgufWriter {
    /// Version in the header.
    pub version: u32,
    /// Keys with GGUF's number of the value's type, and the value's bytes.
    pub metadata: Vec<(String, u32, Vec<u8>)>,
    /// Tensors in the order of their data.
    pub tensors: Vec<Tensor>,
    /// Padding of the data; `general.alignment` is written only by the caller.
    pub alignment: u64,
}

impl Default for GgufWriter {
    fn default() -> Self {
        Self { version: 3, metadata: Vec::new(), tensors: Vec::new(), alignment: 32 }
    }
}

/// A length-prefixed string.
pub fn string_bytes(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

fn array_bytes(element: u32, len: usize, elements: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let head = element.to_le_bytes().into_iter().chain((len as u64).to_le_bytes());
    head.chain(elements).collect()
}

impl GgufWriter {
    /// Sets a key to a value given as bytes, in place of one of the same name.
    pub fn raw(&mut self, key: &str, kind: u32, bytes: Vec<u8>) -> &mut Self {
        self.metadata.retain(|(name, ..)| name != key);
        self.metadata.push((key.to_owned(), kind, bytes));
        self
    }

    /// Takes a key out.
    pub fn without(&mut self, key: &str) -> &mut Self {
        self.metadata.retain(|(name, ..)| name != key);
        self
    }

    /// A 32-bit unsigned integer.
    pub fn u32(&mut self, key: &str, value: u32) -> &mut Self {
        self.raw(key, 4, value.to_le_bytes().into())
    }

    /// A 32-bit float.
    pub fn f32(&mut self, key: &str, value: f32) -> &mut Self {
        self.raw(key, 6, value.to_le_bytes().into())
    }

    /// A boolean.
    pub fn boolean(&mut self, key: &str, value: bool) -> &mut Self {
        self.raw(key, 7, vec![u8::from(value)])
    }

    /// A text.
    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.raw(key, 8, string_bytes(value))
    }

    /// An array of texts.
    pub fn texts(&mut self, key: &str, values: &[String]) -> &mut Self {
        let bytes = values.iter().flat_map(|value| string_bytes(value));
        self.raw(key, 9, array_bytes(8, values.len(), bytes))
    }

    /// An array of 32-bit floats.
    pub fn floats(&mut self, key: &str, values: &[f32]) -> &mut Self {
        self.raw(key, 9, array_bytes(6, values.len(), values.iter().flat_map(|x| x.to_le_bytes())))
    }

    /// An array of 32-bit signed integers.
    pub fn integers(&mut self, key: &str, values: &[i32]) -> &mut Self {
        self.raw(key, 9, array_bytes(5, values.len(), values.iter().flat_map(|x| x.to_le_bytes())))
    }

    /// A tensor from its values.
    pub fn tensor(&mut self, name: &str, shape: &[u64], quant: Quant, values: &[f32]) -> &mut Self {
        self.tensors.push(Tensor {
            name: name.to_owned(),
            shape: shape.to_vec(),
            quantisation: quant.id(),
            data: quant.encode(values),
            offset: None,
        });
        self
    }

    /// The tensor of this name, to be damaged. Panics when there is none.
    pub fn tensor_mut(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).expect("a tensor of this name")
    }

    /// Bytes before the data section: header, metadata and tensor table, padded.
    pub fn data_start(&self) -> usize {
        self.head().len().next_multiple_of(self.alignment as usize)
    }

    /// The whole file.
    pub fn build(&self) -> Vec<u8> {
        let mut out = self.head();
        let alignment = self.alignment as usize;
        for tensor in &self.tensors {
            out.resize(out.len().next_multiple_of(alignment), 0);
            out.extend_from_slice(&tensor.data);
        }
        out
    }

    fn head(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, kind, value) in &self.metadata {
            out.extend(string_bytes(key));
            out.extend(kind.to_le_bytes());
            out.extend(value);
        }
        let mut offset = 0u64;
        for tensor in &self.tensors {
            out.extend(string_bytes(&tensor.name));
            out.extend((tensor.shape.len() as u32).to_le_bytes());
            out.extend(tensor.shape.iter().flat_map(|n| n.to_le_bytes()));
            out.extend(tensor.quantisation.to_le_bytes());
            out.extend(tensor.offset.unwrap_or(offset).to_le_bytes());
            offset = (offset + tensor.data.len() as u64).next_multiple_of(self.alignment);
        }
        out
    }
}
