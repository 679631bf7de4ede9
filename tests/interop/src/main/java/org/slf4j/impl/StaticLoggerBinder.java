package org.slf4j.impl;

import cordwood.interop.Complaints;
import org.slf4j.ILoggerFactory;
import org.slf4j.spi.LoggerFactoryBinder;

/** Where slf4j 1.7 looks for its binding: all that Kafka logs goes to {@link Complaints}. */
public final class StaticLoggerBinder implements LoggerFactoryBinder {
    private static final StaticLoggerBinder SINGLETON = new StaticLoggerBinder();
    private final ILoggerFactory complaints = new Complaints();

    private StaticLoggerBinder() { }

    public static StaticLoggerBinder getSingleton() {
        return SINGLETON;
    }

    @Override
    public ILoggerFactory getLoggerFactory() {
        return complaints;
    }

    @Override
    public String getLoggerFactoryClassStr() {
        return Complaints.class.getName();
    }
}
