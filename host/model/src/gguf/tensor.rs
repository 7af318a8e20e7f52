//! The tensor table: names, shapes, quantisations and where the data lies.

use std::collections::HashMap;

use jackfield_kernels::GgmlType;

use super::reader::{Reader, utf8};
use super::value::MAX_NAME;
use super::{Fault, GgufError};

/// One tensor of the file.
#[derive(Debug, Clone)]
pub struct TensorInfo {
    /// Its name, as in the file.
    pub name: String,
    /// Its shape, fastest axis first: a matrix is `[columns, rows]`.
    pub shape: Vec<u64>,
    /// How its elements are stored.
    pub quantisation: GgmlType,
    /// Absolute byte of the file where its data starts.
    pub start: u64,
    /// Bytes of its data.
    pub bytes: u64,
    /// Where its description is in the file.
    pub(super) described_at: u64,
}

impl TensorInfo {
    /// Elements of one row.
    pub fn columns(&self) -> u64 {
        self.shape[0]
    }

    /// Rows: the product of all axes but the first.
    pub fn rows(&self) -> u64 {
        self.shape[1..].iter().product()
    }

    pub(super) fn error(&self, fault: Fault) -> GgufError {
        GgufError::bad(format!("tensor {}", self.name), self.described_at, fault)
    }
}

/// The tensors of a file, in its order.
pub(super) struct Tensors {
    pub(super) list: Vec<TensorInfo>,
    pub(super) by_name: HashMap<String, usize>,
}

/// Reads `count` descriptions; `start` of each is still relative to the data section.
pub(super) fn read(reader: &mut Reader<'_>, count: u64) -> Result<Tensors, GgufError> {
    let mut tensors = Tensors { list: Vec::new(), by_name: HashMap::new() };
    for i in 0..count {
        let info = read_one(reader, i)?;
        if tensors.by_name.insert(info.name.clone(), tensors.list.len()).is_some() {
            return Err(info.error(Fault::Duplicate));
        }
        tensors.list.push(info);
    }
    Ok(tensors)
}

fn read_one(reader: &mut Reader<'_>, i: u64) -> Result<TensorInfo, GgufError> {
    let described_at = reader.at() as u64;
    let unnamed = || format!("tensors[{i}].name");
    let name = reader.string(MAX_NAME, unnamed)?;
    let name = utf8(name, reader.at() - name.len(), unnamed)?;
    let field = || format!("tensor {name}");
    let at = reader.at() as u64;
    let axes = reader.u32(field)?;
    if !(1..=4).contains(&axes) {
        return Err(GgufError::bad(field(), at, Fault::DimensionCount(axes)));
    }
    let shape = (0..axes).map(|_| reader.u64(field)).collect::<Result<Vec<_>, _>>()?;
    let at = reader.at() as u64;
    let id = reader.u32(field)?;
    let quantisation =
        GgmlType::from_id(id).ok_or_else(|| GgufError::bad(field(), at, Fault::Quantisation(id)))?;
    let start = reader.u64(field)?;
    let mut info = TensorInfo { name: name.to_owned(), shape, quantisation, start, bytes: 0, described_at };
    info.bytes = size(&info).map_err(|fault| info.error(fault))?;
    Ok(info)
}

/// Bytes of a tensor's data, from its shape.
fn size(info: &TensorInfo) -> Result<u64, Fault> {
    if let Some(axis) = info.shape.iter().position(|&n| n == 0) {
        return Err(Fault::ZeroDimension(axis));
    }
    let overflow = || Fault::DimensionOverflow(info.shape.clone());
    let elements = info.shape.iter().try_fold(1u64, |all, &n| all.checked_mul(n)).ok_or_else(overflow)?;
    let block = info.quantisation.block_elems() as u64;
    if !info.columns().is_multiple_of(block) {
        let quantisation = info.quantisation.name();
        return Err(Fault::PartialBlock { columns: info.columns(), block, quantisation });
    }
    (elements / block)
        .checked_mul(info.quantisation.block_bytes() as u64)
        .filter(|&bytes| bytes <= i64::MAX as u64)
        .ok_or_else(overflow)
}

/// Makes every `start` absolute and checks that the data is aligned, inside the file and not shared.
pub(super) fn place(
    tensors: &mut Tensors,
    data_start: u64,
    alignment: u64,
    file: u64,
) -> Result<(), GgufError> {
    for info in &mut tensors.list {
        if info.start % alignment != 0 {
            return Err(info.error(Fault::Misaligned { offset: info.start, alignment }));
        }
        let start = info.start.checked_add(data_start);
        let fits = start.and_then(|s| s.checked_add(info.bytes)).is_some_and(|end| end <= file);
        info.start = start.unwrap_or(u64::MAX);
        if !fits {
            let fault = Fault::TensorTruncated { needed: info.bytes, start: info.start, file };
            return Err(info.error(fault));
        }
    }
    no_overlap(&tensors.list)
}

fn no_overlap(list: &[TensorInfo]) -> Result<(), GgufError> {
    let mut order: Vec<&TensorInfo> = list.iter().collect();
    order.sort_by_key(|info| info.start);
    for pair in order.windows(2) {
        if pair[0].start + pair[0].bytes > pair[1].start {
            return Err(pair[1].error(Fault::Overlap(pair[0].name.clone())));
        }
    }
    Ok(())
}
