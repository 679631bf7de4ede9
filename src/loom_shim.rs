//! Synchronisation primitives: the standard library and arc-swap in a release build, loom's models of both
//! under `cfg(loom)`. Apart from the `models` modules, only this file uses `cfg(loom)`.
//!
//! loom explores every interleaving, and every stale value that the memory model allows, but only for its own
//! types. It has no `OnceLock` and does not model arc-swap. Under `cfg(loom)`, [`OnceLock`] therefore stores
//! its value in the standard type and its memory ordering in a modelled flag, and [`Swap`] is a version and a
//! modelled mutex. The models check the skip list's use of an atomically swapped pointer; they do not check
//! the code of arc-swap.

pub(crate) use shipped_or_modelled::{
    Arc, AtomicBool, AtomicI64, AtomicU64, AtomicUsize, CHECKS_TRUNCATIONS, Cached, Condvar, Event, GATHERS,
    KEYS, Mutex, MutexGuard, OnceLock, Ordering, PUBLISH, Swap,
};

#[cfg(not(loom))]
mod shipped_or_modelled {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};

    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use arc_swap::{ArcSwap, Cache};
    use rustix::io::Errno;
    use rustix::thread::futex::{self, Timespec};

    /// Keys per node, and per row of a lane.
    pub(crate) const KEYS: usize = 64;

    /// Whether a leader waits a short time for other appends.
    pub(crate) const GATHERS: bool = true;

    /// Whether a sync that began before a truncation makes nothing durable.
    pub(crate) const CHECKS_TRUNCATIONS: bool = true;

    /// The memory order of the skip list's publishing store.
    pub(crate) const PUBLISH: Ordering = Ordering::Release;

    /// A repeated event that threads wait for. They wake up without taking a lock; with a condition variable,
    /// all of them would contend for its mutex.
    #[derive(Debug, Default)]
    pub(crate) struct Event(AtomicU32);

    impl Event {
        /// The number of times that the event has happened.
        pub(crate) fn count(&self) -> u32 {
            self.0.load(Ordering::Acquire)
        }

        /// Waits until the event has happened more than `count` times; may also wake up spuriously. Returns
        /// true after a timeout.
        pub(crate) fn wait(&self, count: u32, timeout: Duration) -> bool {
            // `None`, which means no timeout, for a duration out of range: no caller waits as long
            let timeout = Timespec::try_from(timeout).ok();
            futex::wait(&self.0, futex::Flags::PRIVATE, count, timeout.as_ref()) == Err(Errno::TIMEDOUT)
        }

        pub(crate) fn wake_one(&self) {
            self.wake(1);
        }

        pub(crate) fn wake_all(&self) {
            self.wake(i32::MAX.cast_unsigned());
        }

        fn wake(&self, max_threads: u32) {
            self.0.fetch_add(1, Ordering::Release);
            // it fails only for an invalid address
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, max_threads);
        }
    }

    /// A pointer with many readers and one writer; clones share the pointer.
    pub(crate) struct Swap<T>(Arc<ArcSwap<T>>);

    impl<T> Swap<T> {
        pub(crate) fn new(value: Arc<T>) -> Self {
            Self(Arc::new(ArcSwap::new(value)))
        }

        pub(crate) fn store(&self, value: Arc<T>) {
            self.0.store(value);
        }

        pub(crate) fn cached(&self) -> Cached<T> {
            Cached(Cache::new(Arc::clone(&self.0)))
        }
    }

    /// One reader's handle of a [`Swap`], with the last value that it read: a check costs a load and a
    /// comparison.
    pub(crate) struct Cached<T>(Cache<Arc<ArcSwap<T>>, Arc<T>>);

    impl<T> Cached<T> {
        #[inline]
        pub(crate) fn load(&mut self) -> &Arc<T> {
            self.0.load()
        }
    }

    impl<T> Clone for Cached<T> {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }
}

#[cfg(loom)]
mod shipped_or_modelled {
    use std::sync::PoisonError;
    use std::time::Duration;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};

    /// Two keys instead of 64, so that a model of four pushes crosses the end of a node, of the table and of
    /// a lane.
    pub(crate) const KEYS: usize = 2;

    /// loom requires deterministic runs, which a clock would prevent.
    pub(crate) const GATHERS: bool = false;

    /// Two seeded bugs, this one and the next, show that the models detect errors: see the tests of
    /// `skip_list`.
    pub(crate) const CHECKS_TRUNCATIONS: bool = !cfg!(seeded_forgotten_truncation);

    pub(crate) const PUBLISH: Ordering =
        if cfg!(seeded_relaxed_publication) { Ordering::Relaxed } else { Ordering::Release };

    /// A count under a lock.
    #[derive(Debug, Default)]
    pub(crate) struct Event {
        count: Mutex<u32>,
        happened: Condvar,
    }

    impl Event {
        fn lock(&self) -> MutexGuard<'_, u32> {
            self.count.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn count(&self) -> u32 {
            *self.lock()
        }

        /// Time does not pass under loom. A woken thread may be late, so a timeout is always reported.
        pub(crate) fn wait(&self, count: u32, _timeout: Duration) -> bool {
            let guard = self.lock();
            if *guard == count {
                drop(self.happened.wait(guard));
            }
            true
        }

        pub(crate) fn wake_one(&self) {
            *self.lock() += 1;
            self.happened.notify_one();
        }

        pub(crate) fn wake_all(&self) {
            *self.lock() += 1;
            self.happened.notify_all();
        }
    }

    /// The standard type for the value, and a modelled flag for the memory ordering.
    pub(crate) struct OnceLock<T> {
        is_set: AtomicBool,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self { is_set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            self.value.set(value)?;
            self.is_set.store(true, Ordering::Release);
            Ok(())
        }

        pub(crate) fn get(&self) -> Option<&T> {
            if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
        }
    }

    /// The pointer, and a version that readers check without the lock.
    pub(crate) struct Swap<T>(Arc<Versioned<T>>);

    struct Versioned<T> {
        version: AtomicUsize,
        value: Mutex<Arc<T>>,
    }

    impl<T> Versioned<T> {
        fn load(&self) -> (usize, Arc<T>) {
            let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
            (self.version.load(Ordering::Relaxed), Arc::clone(&value))
        }
    }

    impl<T> Swap<T> {
        pub(crate) fn new(value: Arc<T>) -> Self {
            Self(Arc::new(Versioned { version: AtomicUsize::new(0), value: Mutex::new(value) }))
        }

        pub(crate) fn store(&self, value: Arc<T>) {
            let mut guard = self.0.value.lock().unwrap_or_else(PoisonError::into_inner);
            *guard = value;
            self.0.version.fetch_add(1, Ordering::Release);
        }

        pub(crate) fn cached(&self) -> Cached<T> {
            let (version, value) = self.0.load();
            Cached { swap: Arc::clone(&self.0), version, value }
        }
    }

    /// The version and the value that one reader read last.
    pub(crate) struct Cached<T> {
        swap: Arc<Versioned<T>>,
        version: usize,
        value: Arc<T>,
    }

    impl<T> Cached<T> {
        pub(crate) fn load(&mut self) -> &Arc<T> {
            if self.swap.version.load(Ordering::Relaxed) != self.version {
                (self.version, self.value) = self.swap.load();
            }
            &self.value
        }
    }

    impl<T> Clone for Cached<T> {
        fn clone(&self) -> Self {
            Self { swap: Arc::clone(&self.swap), version: self.version, value: Arc::clone(&self.value) }
        }
    }
}
