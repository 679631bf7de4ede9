//! A lock that knows its thread. A handler of a signal runs inside a call of the core, in the same thread: a
//! call that it makes must not wait for the lock of the call that it interrupts.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call that holds a lock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Call {
    /// The name of the method.
    pub(super) name: &'static str,
    /// Whether it checks for signals while it holds the core's lock, which appends take, too.
    pub(super) excludes_appends: bool,
}

impl Call {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, excludes_appends: false }
    }

    pub(super) const fn without_appends(name: &'static str) -> Self {
        Self { name, excludes_appends: true }
    }
}

/// A lock of a call.
#[derive(Debug, Default)]
pub(super) struct CallLock<T> {
    value: Mutex<T>,
    /// The number of the thread that holds it; 0: none.
    thread: AtomicUsize,
    /// What that thread calls.
    call: Mutex<Call>,
}

/// The lock, held by a call.
#[derive(Debug)]
pub(super) struct CallGuard<'a, T> {
    value: MutexGuard<'a, T>,
    thread: &'a AtomicUsize,
}

impl<T> CallLock<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), thread: AtomicUsize::new(0), call: Mutex::default() }
    }

    /// Waits for the lock. The caller has made sure that this thread does not hold it:
    /// [`CallLock::call_of_this_thread`].
    pub(super) fn lock(&self, call: Call) -> CallGuard<'_, T> {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = call;
        self.thread.store(this_thread(), Ordering::Relaxed);
        CallGuard { value, thread: &self.thread }
    }

    /// The call of this thread that holds the lock.
    pub(super) fn call_of_this_thread(&self) -> Option<Call> {
        // only this thread stores its own number
        let is_held = self.thread.load(Ordering::Relaxed) == this_thread();
        is_held.then(|| *self.call.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Drop for CallGuard<'_, T> {
    fn drop(&mut self) {
        self.thread.store(0, Ordering::Relaxed);
    }
}

impl<T> Deref for CallGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for CallGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// A number that no other running thread has.
fn this_thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}
