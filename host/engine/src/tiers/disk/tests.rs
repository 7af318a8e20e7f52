//! Files that are not what they should be; caps; errors.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jackfield_kernels::KvType;
use tempfile::TempDir;

use super::super::samples::{PAYLOAD, identity, payload, prefix};
use super::super::shelf::now;
use super::*;

fn image() -> u64 {
    identity(1, KvType::F16).image_bytes() as u64
}

fn open_as(folder: &Path, blocks: u64, identity: Identity) -> Disk {
    Disk::open(&DiskTier { folder: folder.to_owned(), bytes: blocks * image() }, identity).expect("a folder")
}

fn open(folder: &Path, blocks: u64) -> Disk {
    open_as(folder, blocks, identity(1, KvType::F16))
}

/// A folder with blocks 1 to 3, used in this order.
fn filled() -> (TempDir, Disk) {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = open(folder.path(), 10);
    (1..=3).for_each(|number| {
        disk.put(&prefix(number), &payload(number), Rank(1_000_000 + u64::from(number) * 1000))
    });
    assert_eq!(disk.stats().tier.blocks, 3);
    (folder, disk)
}

fn get(disk: &Disk, number: u8) -> Option<Bytes> {
    disk.get(&[prefix(number)], now()).remove(0)
}

fn count(disk: &Disk, reason: Rejection) -> u64 {
    disk.stats().rejected.iter().find(|(its, _)| *its == reason).expect("each is listed").1
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let shards = fs::read_dir(folder).expect("it is there").flatten().map(|entry| entry.path());
    let mut files: Vec<_> = shards
        .filter_map(|shard| fs::read_dir(shard).ok())
        .flatten()
        .flatten()
        .map(|file| file.path())
        .collect();
    files.sort();
    files
}

#[test]
fn what_is_put_there_is_there_after_a_restart() {
    let (folder, disk) = filled();
    assert_eq!([1, 2, 9].map(|number| disk.may_have(&prefix(number))), [true, true, false]);
    drop(disk);
    let disk = open(folder.path(), 10);
    assert_eq!(
        disk.get(&[prefix(3), prefix(9), prefix(1)], now()),
        [Some(payload(3)), None, Some(payload(1))]
    );
    let stats = disk.stats();
    assert_eq!((stats.tier.hits, stats.tier.bytes), (2, 3 * image()));
    assert!(stats.rejected.iter().all(|(_, count)| *count == 0), "{stats:?}");
}

/// Does something to the file of block 2: it is a miss, counted by its kind, and gone; the others are as they were.
#[track_caller]
fn spoiled(reason: Rejection, spoil: impl FnOnce(&Path)) {
    let (folder, disk) = filled();
    let path = disk.path(&prefix(2));
    spoil(&path);
    assert_eq!(disk.get(&[1, 2, 3].map(prefix), now()), [Some(payload(1)), None, Some(payload(3))]);
    assert_eq!(count(&disk, reason), 1, "{:?}", disk.stats());
    assert_eq!(disk.stats().tier.blocks, 2);
    assert!(!path.is_file(), "it is removed");
    assert_eq!(files(folder.path()).iter().filter(|file| file.is_file()).count(), 2);
    assert_eq!((get(&disk, 2), count(&disk, reason)), (None, 1), "once");
    if !path.exists() {
        disk.put(&prefix(2), &payload(2), now());
        assert_eq!(get(&disk, 2), Some(payload(2)), "it can be stored again");
    }
}

#[test]
fn a_bad_file_is_a_miss() {
    let flip = |at: usize| {
        move |path: &Path| {
            let mut bytes = fs::read(path).expect("it is there");
            bytes[at] ^= 4;
            fs::write(path, bytes).expect("written");
        }
    };
    let cut =
        |len: u64| move |path: &Path| File::options().write(true).open(path).unwrap().set_len(len).unwrap();
    spoiled(Rejection::Checksum, flip(HEADER));
    spoiled(Rejection::Checksum, flip(HEADER + PAYLOAD - 1));
    spoiled(Rejection::Checksum, flip(HEADER + PAYLOAD + 31));
    spoiled(Rejection::Format, flip(0));
    spoiled(Rejection::Length, cut(0));
    spoiled(Rejection::Length, cut(HEADER as u64 - 1));
    spoiled(Rejection::Length, cut(image() - 1));
    spoiled(Rejection::Length, cut(image() + 1));
    spoiled(Rejection::Gone, |path| fs::remove_file(path).unwrap());
    spoiled(Rejection::Unreadable, |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    });
    // Half written and full of zeros, as after a loss of power.
    spoiled(Rejection::Checksum, |path| {
        let mut bytes = fs::read(path).unwrap();
        bytes[HEADER + PAYLOAD / 2..].fill(0);
        fs::write(path, bytes).unwrap();
    });
}

#[test]
fn a_file_in_anothers_place_is_a_miss() {
    spoiled(Rejection::Name, |path| {
        let other = path.parent().unwrap().with_file_name("03").join(prefix(3).to_string());
        fs::copy(other, path).unwrap();
    });
}

#[test]
fn what_another_model_or_layout_left_is_a_miss() {
    let cases =
        [(identity(2, KvType::F16), Rejection::Model), (identity(1, KvType::Int8), Rejection::Layout)];
    for (other, reason) in cases {
        let (folder, disk) = filled();
        drop(disk);
        let disk = open_as(folder.path(), 10, other);
        assert_eq!(disk.get(&[prefix(1)], now()), [None]);
        assert_eq!((count(&disk, reason), disk.stats().tier.blocks), (1, 2));
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_a_miss() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, disk) = filled();
    let path = disk.path(&prefix(2));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        eprintln!("SKIPPED: this user may read everything");
        return;
    }
    assert_eq!((get(&disk, 2), count(&disk, Rejection::Unreadable)), (None, 1));
    assert_eq!(files(folder.path()).len(), 2);
}

#[cfg(unix)]
#[test]
fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, disk) = filled();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&disk.path(&prefix(1))), mode(&folder.path().join("01"))), (0o600, 0o700));
}

#[test]
fn the_oldest_goes_first_and_a_smaller_cap_is_kept_to_from_the_start() {
    let (folder, disk) = filled();
    disk.touch(&[prefix(1)], Rank(2_000_000));
    drop(disk);
    let disk = open(folder.path(), 2);
    assert_eq!([1, 2, 3].map(|number| disk.may_have(&prefix(number))), [true, false, true]);
    assert_eq!(files(folder.path()).len(), 2);
    disk.put(&prefix(4), &payload(4), Rank(3_000_000));
    assert_eq!((get(&disk, 3), get(&disk, 4)), (None, Some(payload(4))));
    assert_eq!((disk.stats().tier.evicted, files(folder.path()).len()), (1, 2));
}

#[test]
fn what_is_to_be_kept_is_kept_over_a_restart_and_as_long_as_its_time_runs() {
    let (folder, disk) = filled();
    let now = now().0;
    disk.put(&prefix(4), &payload(4), Rank(now + 3_600_000));
    drop(disk);
    let disk = open(folder.path(), 2);
    // Used later, and yet it goes first.
    disk.put(&prefix(5), &payload(5), Rank(now + 1));
    disk.put(&prefix(6), &payload(6), Rank(now + 2));
    assert_eq!([4, 5, 6].map(|number| get(&disk, number).is_some()), [true, false, true]);
}

#[test]
fn a_cap_below_one_block_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = DiskTier { folder: folder.path().to_owned(), bytes: image() - 1 };
    let disk = Disk::open(&config, identity(1, KvType::F16)).unwrap();
    disk.put(&prefix(1), &payload(1), now());
    assert_eq!((disk.stats().dropped_writes, files(folder.path()).len()), (1, 0));
}

#[test]
fn strange_things_in_the_folder_are_left_and_rests_of_writing_are_not() {
    let (folder, disk) = filled();
    drop(disk);
    let inside = |name: &str| folder.path().join("01").join(name);
    let names = ["0".repeat(63), "01".repeat(33), "0G".repeat(32), "龘".repeat(30)];
    let strange: Vec<_> =
        ["note.txt", "ab"].into_iter().chain(names.iter().map(String::as_str)).map(inside).collect();
    strange.iter().for_each(|path| fs::write(path, "x").unwrap());
    fs::create_dir(inside(&format!("01{}", "ee".repeat(31)))).unwrap();
    fs::write(folder.path().join("02").join(prefix(1).to_string()), "in the wrong folder").unwrap();
    fs::write(folder.path().join("zz"), "no folder").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/zero", inside(&format!("01{}", "ff".repeat(31)))).unwrap();
    let rest = inside(&format!("{}.4711-0.tmp", prefix(1)));
    fs::write(&rest, "half").unwrap();
    let disk = open(folder.path(), 10);
    assert_eq!(disk.stats().tier.blocks, 3);
    assert!(!rest.exists());
    assert!(strange.iter().all(|path| path.exists()));
    assert_eq!(get(&disk, 1), Some(payload(1)));
}

#[test]
fn a_write_that_fails_is_counted_and_the_next_one_goes_on() {
    let (folder, disk) = filled();
    // A file where the folder of these blocks would have to be.
    fs::write(folder.path().join("07"), "in the way").unwrap();
    (0..3).for_each(|_| disk.put(&prefix(7), &payload(7), now()));
    disk.put(&prefix(8), &payload(8), now());
    assert_eq!((disk.stats().failed_writes, disk.stats().tier.blocks), (3, 4));
    assert_eq!((get(&disk, 7), get(&disk, 8)), (None, Some(payload(8))));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_counted_and_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    let mount = |args: &[&str]| {
        std::process::Command::new(args[0])
            .args(&args[1..])
            .arg(folder.path())
            .output()
            .is_ok_and(|o| o.status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs"]) {
        eprintln!("SKIPPED: this user may not mount a small disk");
        return;
    }
    let disk = open(folder.path(), 10_000);
    let all: Vec<_> = (0..=255).map(prefix).collect();
    all.iter().for_each(|prefix| disk.put(prefix, &payload(1), now()));
    let (stats, left) = (disk.stats(), files(folder.path()));
    let found = disk.get(&all, now()).into_iter().flatten().count();
    drop(disk);
    assert!(mount(&["umount"]));
    assert!(stats.failed_writes > 0 && stats.tier.blocks > 0, "{stats:?}");
    assert_eq!(stats.failed_writes as usize + stats.tier.blocks, 256);
    assert_eq!((left.len(), found), (stats.tier.blocks, stats.tier.blocks), "{left:?}");
}
