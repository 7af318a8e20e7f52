//! What is kept up to a number of bytes, and what goes first when there is more.

use std::collections::{BTreeMap, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

use jackfield_scheduler::BlockHash;

/// When a block counts as last used, in microseconds since 1970. One that is to be kept for an hour ranks as if it had been
/// used in an hour: until then all goes before it that is used now, and afterwards it is as old as it seems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(pub(crate) u64);

/// Blocks by name, of so many bytes in all; the least in rank is given up first.
#[derive(Debug)]
pub(crate) struct Shelf<V> {
    max_bytes: u64,
    bytes: u64,
    slots: HashMap<BlockHash, Slot<V>>,
    order: BTreeMap<Place, BlockHash>,
    tick: u64,
}

/// Equal ranks go in the order in which they came.
type Place = (Rank, u64);

#[derive(Debug)]
struct Slot<V> {
    value: V,
    bytes: u64,
    place: Place,
}

/// What was given up.
#[derive(Debug, PartialEq)]
pub(crate) struct Evicted<V> {
    pub(crate) prefix: BlockHash,
    pub(crate) value: V,
    pub(crate) rank: Rank,
}

/// The present as a rank.
pub(crate) fn now() -> Rank {
    Rank::at(SystemTime::now())
}

impl Rank {
    /// A time as a rank.
    pub(crate) fn at(time: SystemTime) -> Rank {
        Rank(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64)
    }

    /// This far back: the end of a chain ranks before its beginning, without which it is of no use.
    pub(crate) fn back(self, links: usize) -> Rank {
        Rank(self.0.saturating_sub(links as u64))
    }
}

impl<V> Shelf<V> {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Shelf { max_bytes, bytes: 0, slots: HashMap::new(), order: BTreeMap::new(), tick: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    pub(crate) fn contains(&self, prefix: &BlockHash) -> bool {
        self.slots.contains_key(prefix)
    }

    /// When a block counts as last used.
    pub(crate) fn rank(&self, prefix: &BlockHash) -> Option<Rank> {
        self.slots.get(prefix).map(|slot| slot.place.0)
    }

    /// The value, without a word on its use.
    pub(crate) fn peek(&self, prefix: &BlockHash) -> Option<&V> {
        self.slots.get(prefix).map(|slot| &slot.value)
    }

    /// The value, which counts as used at `rank`, or later where it did already.
    pub(crate) fn touch(&mut self, prefix: &BlockHash, rank: Rank) -> Option<&V> {
        self.tick += 1;
        let slot = self.slots.get_mut(prefix)?;
        let place = (slot.place.0.max(rank), self.tick);
        self.order.remove(&slot.place);
        self.order.insert(place, *prefix);
        slot.place = place;
        Some(&slot.value)
    }

    /// Gives up what stands in the way of so many bytes, the least in rank first. Too few are left when that is more than
    /// all there may be: then nothing is given up.
    pub(crate) fn make_room(&mut self, bytes: u64) -> Vec<Evicted<V>> {
        let mut evicted = Vec::new();
        while bytes <= self.max_bytes && self.bytes.saturating_add(bytes) > self.max_bytes {
            let Some(((rank, _), prefix)) = self.order.first_key_value().map(|(place, key)| (*place, *key))
            else {
                break;
            };
            evicted.extend(self.remove(&prefix).map(|value| Evicted { prefix, value, rank }));
        }
        evicted
    }

    /// Puts a block there, in the place of an earlier one of its name, and gives up others for it. What comes in stays,
    /// whatever its rank; only one that is larger than all there may be is given back as given up.
    pub(crate) fn insert(&mut self, prefix: BlockHash, value: V, bytes: u64, rank: Rank) -> Vec<Evicted<V>> {
        self.remove(&prefix);
        let mut evicted = self.make_room(bytes);
        if self.bytes.saturating_add(bytes) > self.max_bytes {
            evicted.push(Evicted { prefix, value, rank });
            return evicted;
        }
        self.tick += 1;
        let place = (rank, self.tick);
        self.order.insert(place, prefix);
        self.slots.insert(prefix, Slot { value, bytes, place });
        self.bytes += bytes;
        evicted
    }

    pub(crate) fn remove(&mut self, prefix: &BlockHash) -> Option<V> {
        let slot = self.slots.remove(prefix)?;
        self.order.remove(&slot.place);
        self.bytes -= slot.bytes;
        Some(slot.value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn name(number: u8) -> BlockHash {
        BlockHash::from_bytes([number; 32])
    }

    fn names(evicted: &[Evicted<u8>]) -> Vec<u8> {
        evicted.iter().map(|evicted| evicted.value).collect()
    }

    #[test]
    fn the_least_in_rank_goes_first_and_what_is_to_be_kept_last() {
        let mut shelf = Shelf::new(3);
        let now = 1000;
        shelf.insert(name(1), 1, 1, Rank(now + 500));
        shelf.insert(name(2), 2, 1, Rank(now));
        shelf.insert(name(3), 3, 1, Rank(now));
        assert_eq!(names(&shelf.insert(name(4), 4, 1, Rank(now + 1))), [2]);
        shelf.touch(&name(3), Rank(now + 2));
        assert_eq!(names(&shelf.insert(name(5), 5, 1, Rank(now + 3))), [4]);
        // Its time is over: it is as old as it seems.
        assert_eq!(names(&shelf.insert(name(6), 6, 2, Rank(now + 501))), [3, 5]);
        assert_eq!(names(&shelf.insert(name(7), 7, 1, Rank(now + 502))), [1]);
        assert_eq!(shelf.peek(&name(7)), Some(&7));
    }

    #[test]
    fn who_comes_in_stays_and_one_too_large_does_not_empty_the_shelf() {
        let mut shelf = Shelf::new(2);
        shelf.insert(name(1), 1, 1, Rank(9000));
        shelf.insert(name(2), 2, 1, Rank(9000));
        assert_eq!(names(&shelf.insert(name(3), 3, 3, Rank(1))), [3]);
        assert_eq!(shelf.len(), 2);
        assert_eq!(names(&shelf.insert(name(4), 4, 1, Rank(1))), [1]);
        assert_eq!(names(&shelf.insert(name(5), 5, 1, Rank(1))), [4]);
        assert_eq!((shelf.len(), shelf.bytes()), (2, 2));
    }

    proptest! {
        /// Against a list that is searched.
        #[test]
        fn it_never_holds_more_than_it_may_and_loses_the_least(
            ops in prop::collection::vec((0..4u8, 0..8u8, 0..6u64, 0..20u64), 1..80)
        ) {
            let mut shelf = Shelf::new(12);
            let mut model: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
            for (op, key, bytes, rank) in ops {
                match op {
                    0 => {
                        let found = shelf.touch(&name(key), Rank(rank)).is_some();
                        prop_assert_eq!(found, model.contains_key(&key));
                        model.entry(key).and_modify(|slot| slot.1 = slot.1.max(rank));
                    }
                    1 => prop_assert_eq!(shelf.remove(&name(key)).is_some(), model.remove(&key).is_some()),
                    _ => {
                        model.remove(&key);
                        for evicted in shelf.insert(name(key), key, bytes, Rank(rank)) {
                            let (_, its) = model.remove(&evicted.value).expect("it was there");
                            prop_assert!(model.values().all(|slot| slot.1 >= its));
                        }
                        model.insert(key, (bytes, rank));
                    }
                }
                let bytes: u64 = model.values().map(|slot| slot.0).sum();
                prop_assert!(bytes <= 12);
                prop_assert_eq!((shelf.len(), shelf.bytes()), (model.len(), bytes));
            }
        }
    }
}
