//! Sound files, and every way in which one can be unsound.

use jackfield_tiny::gguf_writer::{GgufWriter, Quant, string_bytes};
use jackfield_tiny::tiny_model::TinyModel;
use proptest::prelude::*;

use super::*;

fn small() -> GgufWriter {
    let mut w = GgufWriter::default();
    w.text("general.architecture", "llama").u32("llama.block_count", 2);
    w.tensor("a", &[32, 2], Quant::Q4_0, &[0.5; 64]);
    w.tensor("b", &[8], Quant::F32, &[1.0; 8]);
    w
}

/// The error of a file that must have one.
fn refuse(bytes: Vec<u8>) -> (String, u64, Fault) {
    match Gguf::from_bytes(bytes) {
        Err(GgufError::Bad { field, offset, fault }) => (field, offset, fault),
        Err(other) => panic!("not a fault: {other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn a_sound_file_is_read() {
    for version in [2, 3] {
        let mut w = small();
        w.version = version;
        let gguf = Gguf::from_bytes(w.build()).unwrap();
        assert_eq!(gguf.version(), version);
        assert_eq!(gguf.text("general.architecture").unwrap(), Some("llama"));
        assert_eq!(gguf.unsigned("llama.block_count").unwrap(), Some(2));
        assert_eq!(gguf.unsigned("llama.context_length").unwrap(), None);
        let a = gguf.tensor("a").unwrap();
        assert_eq!((a.columns(), a.rows(), a.bytes), (32, 2, 36));
        assert_eq!(gguf.data(gguf.tensor("b").unwrap()), 1.0f32.to_le_bytes().repeat(8));
    }
}

#[test]
fn arrays_and_every_scalar_type_are_read() {
    let mut w = small();
    w.raw("u8", 0, vec![200]).raw("i8", 1, vec![0xff]).raw("u16", 2, vec![1, 2]).raw(
        "i16",
        3,
        vec![0xfe, 0xff],
    );
    w.raw("u64", 10, 7u64.to_le_bytes().into()).raw("i64", 11, 8i64.to_le_bytes().into());
    w.raw("f64", 12, 0.25f64.to_le_bytes().into()).boolean("yes", true);
    w.texts("texts", &["x".into(), "中".into()]).floats("floats", &[1.5]).integers("integers", &[-1]);
    let gguf = Gguf::from_bytes(w.build()).unwrap();
    assert_eq!(gguf.get("u8").unwrap(), Some(Value::Unsigned(200)));
    assert_eq!(gguf.get("i8").unwrap(), Some(Value::Signed(-1)));
    assert_eq!(gguf.unsigned("u16").unwrap(), Some(513));
    assert_eq!(gguf.get("i16").unwrap(), Some(Value::Signed(-2)));
    assert_eq!((gguf.unsigned("u64").unwrap(), gguf.unsigned("i64").unwrap()), (Some(7), Some(8)));
    assert_eq!((gguf.float("f64").unwrap(), gguf.boolean("yes").unwrap()), (Some(0.25), Some(true)));
    assert_eq!(gguf.texts("texts").unwrap(), Some(vec!["x", "中"]));
    assert_eq!(gguf.floats("floats").unwrap(), Some(vec![1.5]));
    assert_eq!(gguf.integers("integers").unwrap(), Some(vec![u32::MAX]));
}

#[test]
fn a_value_of_another_type_is_named() {
    let mut w = small();
    w.raw("i8", 1, vec![0xff]);
    let gguf = Gguf::from_bytes(w.build()).unwrap();
    let error = gguf.text("llama.block_count").unwrap_err();
    assert_eq!(error.field(), Some("llama.block_count"));
    assert_eq!(error.fault(), Some(&Fault::WrongType { wanted: "a string", found: ValueType::U32 }));
    assert_eq!(gguf.unsigned("i8").unwrap_err().fault(), Some(&Fault::Value("-1 is negative".into())));
}

#[test]
fn cut_anywhere_before_the_data_it_names_the_field() {
    let bytes = small().build();
    let head = small().data_start();
    for len in 0..head {
        let (field, offset, fault) = refuse(bytes[..len].to_vec());
        assert!(offset <= len as u64, "{len}: {field} at {offset}");
        let cut = matches!(fault, Fault::Truncated { .. } | Fault::TensorTruncated { .. });
        assert!(cut, "{len}: {field}: {fault}");
    }
    assert_eq!(refuse(vec![]).0, "header.magic");
    assert_eq!(refuse(bytes[..3].to_vec()).2, Fault::Truncated { needed: 4, available: 3 });
    let (field, offset, fault) = refuse(bytes[..24].to_vec());
    assert_eq!((field.as_str(), offset), ("metadata[0].key", 24));
    assert_eq!(fault, Fault::Truncated { needed: 8, available: 0 });
}

#[test]
fn cut_in_the_data_it_names_the_tensor_and_both_sizes() {
    let w = small();
    let (bytes, start) = (w.build(), w.data_start() as u64);
    let (field, _, fault) = refuse(bytes[..start as usize].to_vec());
    assert_eq!(field, "tensor a");
    assert_eq!(fault, Fault::TensorTruncated { needed: 36, start, file: start });
    let (field, _, fault) = refuse(bytes[..bytes.len() - 1].to_vec());
    assert_eq!(field, "tensor b");
    assert_eq!(fault, Fault::TensorTruncated { needed: 32, start: start + 64, file: bytes.len() as u64 - 1 });
}

#[test]
fn another_kind_of_file_is_told_from_a_damaged_one() {
    let mut bytes = small().build();
    bytes[0] = b'X';
    assert_eq!(refuse(bytes).2, Fault::Magic(*b"XGUF"));
    for (version, fault) in
        [(99, Fault::Version(99)), (1, Fault::Version(1)), (3u32.swap_bytes(), Fault::BigEndian)]
    {
        let mut w = small();
        w.version = version;
        let (field, offset, found) = refuse(w.build());
        assert_eq!((field.as_str(), offset, found), ("header.version", 4, fault));
    }
}

/// A file of one key with this value.
fn with_value(kind: u32, value: &[u8]) -> Vec<u8> {
    let mut w = small();
    w.raw("k", kind, value.to_vec());
    w.build()
}

#[test]
fn lengths_are_checked_before_they_are_believed() {
    let gigabyte = (1u64 << 30).to_le_bytes();
    let (field, _, fault) = refuse(with_value(8, &gigabyte));
    assert_eq!(field, "k");
    assert_eq!(fault, Fault::TooMany { found: 1 << 30, limit: 16 << 20 });
    let megabyte = (1u64 << 20).to_le_bytes();
    assert!(matches!(refuse(with_value(8, &megabyte)).2, Fault::Truncated { needed: 1_048_576, .. }));
    let array = |element: u32, len: u64| [&element.to_le_bytes()[..], &len.to_le_bytes()].concat();
    assert!(matches!(refuse(with_value(9, &array(4, u64::MAX))).2, Fault::TooMany { found: u64::MAX, .. }));
    assert!(matches!(
        refuse(with_value(9, &array(4, 1 << 20))).2,
        Fault::Truncated { needed: 4_194_304, .. }
    ));
    let (field, _, fault) = refuse(with_value(9, &array(8, 1 << 20)));
    assert!(field.starts_with("k["), "{field}");
    // What follows is read as strings until one of them cannot be.
    assert!(matches!(fault, Fault::Truncated { .. } | Fault::TooMany { .. }), "{fault}");
}

#[test]
fn counts_in_the_header_are_limited() {
    for (at, field) in [(8, "header.tensor_count"), (16, "header.metadata_kv_count")] {
        let mut bytes = small().build();
        bytes[at..at + 8].fill(0xff);
        let (found, offset, fault) = refuse(bytes);
        assert_eq!((found.as_str(), offset), (field, at as u64));
        assert!(matches!(fault, Fault::TooMany { found: u64::MAX, .. }));
    }
}

#[test]
fn odd_values_are_refused() {
    let nested = [&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat();
    assert_eq!(refuse(with_value(9, &nested)).2, Fault::NestedArray);
    assert_eq!(refuse(with_value(13, &[])).2, Fault::ValueType(13));
    let unknown = [&77u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat();
    assert_eq!(refuse(with_value(9, &unknown)).2, Fault::ValueType(77));
    assert!(matches!(refuse(with_value(7, &[2])).2, Fault::Value(_)));
}

#[test]
fn text_that_is_not_utf8_is_refused_where_it_is_asked_for() {
    let bad = [&2u64.to_le_bytes()[..], b"a\xff"].concat();
    let gguf = Gguf::from_bytes(with_value(8, &bad)).unwrap();
    let error = gguf.text("k").unwrap_err();
    assert_eq!((error.field(), error.fault()), (Some("k"), Some(&Fault::NotUtf8)));
    let array = [&8u32.to_le_bytes()[..], &1u64.to_le_bytes(), &bad].concat();
    let gguf = Gguf::from_bytes(with_value(9, &array)).unwrap();
    assert_eq!(gguf.texts("k").unwrap_err().field(), Some("k[0]"));
}

#[test]
fn names_are_unique() {
    let mut w = small();
    w.metadata.push(w.metadata[0].clone());
    let (field, _, fault) = refuse(w.build());
    assert_eq!((field.as_str(), fault), ("general.architecture", Fault::Duplicate));
    let mut w = small();
    w.tensor("a", &[8], Quant::F32, &[0.0; 8]);
    let (field, _, fault) = refuse(w.build());
    assert_eq!((field.as_str(), fault), ("tensor a", Fault::Duplicate));
}

/// The fault of a file whose first tensor was changed.
fn with_tensor(change: impl FnOnce(&mut jackfield_tiny::gguf_writer::Tensor)) -> Fault {
    let mut w = small();
    change(w.tensor_mut("a"));
    let (field, _, fault) = refuse(w.build());
    assert_eq!(field, "tensor a");
    fault
}

#[test]
fn shapes_are_checked() {
    assert_eq!(with_tensor(|t| t.shape = vec![]), Fault::DimensionCount(0));
    assert_eq!(with_tensor(|t| t.shape = vec![32; 5]), Fault::DimensionCount(5));
    assert_eq!(with_tensor(|t| t.shape = vec![32, 0]), Fault::ZeroDimension(1));
    let huge = vec![1 << 40, 1 << 40];
    assert_eq!(with_tensor(|t| t.shape = huge.clone()), Fault::DimensionOverflow(huge.clone()));
    // Fits 64 bits as a count of elements, not as bytes of floats.
    let wide = vec![1 << 62];
    assert_eq!(
        with_tensor(|t| {
            t.shape = wide.clone();
            t.quantisation = 0;
        }),
        Fault::DimensionOverflow(wide.clone())
    );
    let partial = Fault::PartialBlock { columns: 33, block: 32, quantisation: "Q4_0" };
    assert_eq!(with_tensor(|t| t.shape = vec![33, 2]), partial);
    let mut bytes = small().build();
    let count = find(&bytes, &[&string_bytes("a")[..], &2u32.to_le_bytes()].concat()) + 9;
    bytes[count..count + 4].fill(0xff);
    assert_eq!(refuse(bytes).2, Fault::DimensionCount(u32::MAX));
}

fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).position(|window| window == wanted).unwrap()
}

#[test]
fn unknown_quantisations_are_named() {
    for id in [4, 5, 9, 16, 29, 39, u32::MAX] {
        assert_eq!(with_tensor(|t| t.quantisation = id), Fault::Quantisation(id));
    }
}

#[test]
fn data_must_be_aligned_inside_and_apart() {
    assert_eq!(with_tensor(|t| t.offset = Some(8)), Fault::Misaligned { offset: 8, alignment: 32 });
    assert!(matches!(with_tensor(|t| t.offset = Some(u64::MAX - 31)), Fault::TensorTruncated { .. }));
    assert!(matches!(with_tensor(|t| t.offset = Some(1 << 40)), Fault::TensorTruncated { .. }));
    let mut w = small();
    w.tensor_mut("b").offset = Some(32);
    let (field, _, fault) = refuse(w.build());
    assert_eq!((field.as_str(), fault), ("tensor b", Fault::Overlap("a".into())));
}

#[test]
fn alignment_is_a_sane_power_of_two() {
    for bad in [0, 3, 1 << 31] {
        let mut w = small();
        w.u32("general.alignment", bad);
        let (field, _, fault) = refuse(w.build());
        assert_eq!((field.as_str(), fault), ("general.alignment", Fault::Alignment(bad.into())));
    }
    let mut w = small();
    w.text("general.alignment", "32");
    assert!(matches!(refuse(w.build()).2, Fault::WrongType { .. }));
    let mut w = small();
    w.u32("general.alignment", 64).alignment = 64;
    assert_eq!(Gguf::from_bytes(w.build()).unwrap().tensors().len(), 2);
}

#[test]
fn a_file_on_disk_is_mapped_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, small().build()).unwrap();
    assert_eq!(Gguf::open(&path).unwrap().tensors().len(), 2);
    std::fs::write(&path, []).unwrap();
    let empty = Gguf::open(&path).err().unwrap();
    assert_eq!(empty.field(), Some("header.magic"));
    let missing = Gguf::open(&folder.path().join("none")).err().unwrap();
    assert!(missing.to_string().contains("none"), "{missing}");
}

/// Everything that can be asked of a file.
fn ask_everything(bytes: Vec<u8>) {
    let Ok(gguf) = Gguf::from_bytes(bytes) else { return };
    for key in gguf.keys().to_vec() {
        let _ = (gguf.get(&key), gguf.texts(&key), gguf.floats(&key), gguf.integers(&key));
    }
    for info in gguf.tensors() {
        assert_eq!(gguf.data(info).len() as u64, info.bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn damage_never_panics(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<Option<prop::sample::Index>>(),
        tiny in prop::bool::weighted(0.1),
    ) {
        let mut w = if tiny { TinyModel::default().writer() } else { small() };
        w.texts("tokens", &["a".into(), "b".into()]).floats("scores", &[0.0, 1.0]);
        let mut bytes = w.build();
        let head = w.data_start();
        for (at, value) in flips {
            bytes[at.index(head)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        ask_everything(bytes);
    }

    #[test]
    fn noise_after_the_header_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        let head = [&b"GGUF"[..], &3u32.to_le_bytes(), &2u64.to_le_bytes(), &3u64.to_le_bytes()].concat();
        ask_everything([head, noise].concat());
    }
}
