//! Objects that Java refers to by a number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jni::sys::jlong;

use super::boundary::{Failure, Result};

/// The objects of one kind, by number. No number is used again.
pub(super) struct Handles<T>(Mutex<Numbered<T>>);

struct Numbered<T> {
    last: jlong,
    objects: HashMap<jlong, Arc<Mutex<T>>>,
}

impl<T> Handles<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Numbered { last: 0, objects: HashMap::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, Numbered<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores an object, and returns its number, which is above 0.
    pub(super) fn add(&self, object: T) -> jlong {
        let mut numbered = self.lock();
        numbered.last += 1;
        let handle = numbered.last;
        numbered.objects.insert(handle, Arc::new(Mutex::new(object)));
        handle
    }

    /// Calls a function with an object. Other threads that use the same object wait.
    pub(super) fn with<R>(&self, handle: jlong, call: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        let object = self.lock().objects.get(&handle).cloned().ok_or(Failure::Closed(handle))?;
        let mut object = object.lock().unwrap_or_else(PoisonError::into_inner);
        call(&mut object)
    }

    /// Drops an object, if there is one of this number, as soon as no other thread uses it.
    pub(super) fn remove(&self, handle: jlong) {
        let removed = self.lock().objects.remove(&handle);
        drop(removed);
    }
}
