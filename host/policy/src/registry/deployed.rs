//! A version of a policy in use: its breaker stands before each call.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    time::{Duration, Instant},
};

use crate::{
    BreakerState, Fault, Policy, PolicyVersion,
    breaker::{Breaker, Trip, Went},
    policy::Called,
    runtime::Gate,
};

/// Tenants of a policy that have a breaker and a gate of their own at a time.
const MOST_TENANTS: usize = 1024;

/// A version went wrong too often.
#[derive(Debug)]
pub(super) struct Tripped {
    pub(super) version: PolicyVersion,
    pub(super) trip: Trip,
}

/// A version of a policy in use.
pub(crate) struct Deployed {
    policy: Arc<Policy>,
    breakers: Mutex<Breakers>,
    /// Places for the calls of each tenant that makes some.
    gates: Mutex<HashMap<String, Arc<Gate>>>,
    since: Instant,
    news: Sender<Tripped>,
}

struct Breakers {
    all: Breaker,
    by_tenant: HashMap<String, Breaker>,
    last_trip: Option<(Trip, Instant)>,
}

impl Deployed {
    pub(super) fn new(policy: Arc<Policy>, news: Sender<Tripped>) -> Arc<Deployed> {
        let breakers =
            Mutex::new(Breakers { all: breaker(&policy), by_tenant: HashMap::new(), last_trip: None });
        Arc::new(Deployed { policy, breakers, gates: Mutex::default(), since: Instant::now(), news })
    }

    /// The policy itself; calls made through it pass the breaker by.
    pub(super) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Makes a call, unless the breaker is open.
    ///
    /// # Errors
    /// [`Fault::Tripped`] when it is; what the call came to otherwise.
    pub(super) fn call<T>(
        &self,
        tenant: &str,
        call: impl FnOnce(&Policy) -> Result<Called<T>, Fault>,
    ) -> Result<Called<T>, Fault> {
        if !self.locked().admit(&self.policy, tenant, self.since.elapsed()) {
            return Err(Fault::Tripped);
        }
        let limits = self.policy.manifest().limits;
        let gate = self.gate(tenant);
        let place = gate.enter(Duration::from_millis(limits.deadline_ms.into()));
        let started = Instant::now();
        let called = match &place {
            Some(_) => call(&self.policy),
            None => Err(Fault::Busy { limit_ms: limits.deadline_ms }),
        };
        drop(place);
        let micros = u32::try_from(started.elapsed().as_micros()).unwrap_or(u32::MAX);
        // That the host had no room for the call says nothing of the policy.
        let went = match &called {
            Err(Fault::Busy { .. }) => None,
            called => Some(Went { fault: called.is_err(), micros }),
        };
        self.settle(tenant, went);
        called
    }

    /// Books a call that it made beside the active version: it is held to its share of faults there too. How long it took says
    /// nothing, behind everything else.
    pub(super) fn looked_on(&self, tenant: &str, fault: bool) {
        self.settle(tenant, Some(Went { fault, micros: 0 }));
    }

    fn settle(&self, tenant: &str, went: Option<Went>) {
        let trip = self.locked().settle(tenant, self.since.elapsed(), went);
        if let Some(trip) = trip {
            // The registry is gone only when the host is.
            let _ = self.news.send(Tripped { version: self.policy.version().clone(), trip });
        }
    }

    /// Where the calls of a tenant come in.
    fn gate(&self, tenant: &str) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(tenant) {
            return gate.clone();
        }
        if gates.len() >= MOST_TENANTS {
            gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        let gate = Arc::new(Gate::new(self.policy.manifest().limits.tenant_instances as usize));
        gates.insert(tenant.to_owned(), gate.clone());
        gate
    }

    /// What its breaker does now.
    pub(super) fn breaker(&self) -> BreakerState {
        self.locked().all.state()
    }

    /// How often its breaker opened, and why and how long ago the last time.
    pub(super) fn trips(&self) -> (u32, Option<(Trip, Duration)>) {
        let breakers = self.locked();
        (breakers.all.trips(), breakers.last_trip.map(|(trip, at)| (trip, at.elapsed())))
    }

    fn locked(&self) -> MutexGuard<'_, Breakers> {
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Deployed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Deployed").field(self.policy.version()).finish()
    }
}

fn breaker(policy: &Policy) -> Breaker {
    let manifest = policy.manifest();
    Breaker::new(manifest.breaker, manifest.limits.deadline_ms)
}

impl Breakers {
    fn admit(&mut self, policy: &Policy, tenant: &str, now: Duration) -> bool {
        if !self.all.admit(now) {
            return false;
        }
        if !policy.manifest().breaker.per_tenant {
            return true;
        }
        if self.by_tenant.len() >= MOST_TENANTS && !self.by_tenant.contains_key(tenant) {
            self.by_tenant.retain(|_, breaker| !breaker.is_idle(now));
        }
        // Where all are in use a further tenant is watched with the others only.
        let has_room = self.by_tenant.len() < MOST_TENANTS;
        let own = match self.by_tenant.get_mut(tenant) {
            None if has_room => {
                Some(self.by_tenant.entry(tenant.to_owned()).or_insert_with(|| breaker(policy)))
            }
            own => own,
        };
        let admitted = own.is_none_or(|own| own.admit(now));
        if !admitted {
            self.all.forget();
        }
        admitted
    }

    /// Books a call that was admitted; none when it was not made. Says why when the breaker of all opens.
    fn settle(&mut self, tenant: &str, now: Duration, went: Option<Went>) -> Option<Trip> {
        let own = self.by_tenant.get_mut(tenant);
        let Some(went) = went else {
            self.all.forget();
            own.into_iter().for_each(Breaker::forget);
            return None;
        };
        if let Some(trip) = own.and_then(|own| own.observe(now, went)) {
            tracing::warn!(tenant, %trip, "a policy is out of the way of one tenant");
        }
        let trip = self.all.observe(now, went)?;
        self.last_trip = Some((trip, Instant::now()));
        Some(trip)
    }
}
