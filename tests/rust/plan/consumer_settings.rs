//! Settings of Kafka's consumer after the prefix `kafka.`: queries written for Spark's Kafka source may have
//! any of them.

use cordwood::plan::{SourceOptions, Warning};
use cordwood::types::IsolationLevel;

/// `ConsumerConfig.configNames()` of Kafka 3.9 and 4.3 together.
const SETTINGS: &str = "
    allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset bootstrap.servers
    check.crcs client.dns.lookup client.id client.rack config.providers connections.max.idle.ms default.api.timeout.ms
    enable.auto.commit enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
    group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes
    internal.leave.group.on.close internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms partition.assignment.strategy receive.buffer.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms
    sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
    sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes session.timeout.ms
    share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password
    ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
    ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    ssl.truststore.certificates ssl.truststore.location ssl.truststore.password ssl.truststore.type value.deserializer
";

/// Those that mean something without a broker.
const IN_USE: [&str; 3] = ["check.crcs", "exclude.internal.topics", "isolation.level"];

fn settings() -> Vec<&'static str> {
    let settings: Vec<_> = SETTINGS.split_whitespace().collect();
    assert!(settings.len() > 100, "{}", settings.len());
    settings
}

fn read(texts: &[(&str, &str)]) -> (SourceOptions, Vec<Warning>) {
    let mut warnings = Vec::new();
    let all = [("path", "data")].into_iter().chain(texts.iter().copied());
    let options = SourceOptions::from_texts(all, &mut warnings);
    (options.unwrap_or_else(|error| panic!("{texts:?}: {error}")), warnings)
}

fn text_of(setting: &str) -> &'static str {
    if setting == "isolation.level" { "read_committed" } else { "true" }
}

#[test]
fn every_setting_is_accepted_and_those_for_a_broker_are_ignored_with_a_warning() {
    let default = read(&[]).0;
    for setting in settings() {
        let lower = format!("kafka.{setting}");
        for name in [lower.to_uppercase(), lower] {
            let (options, warnings) = read(&[(&name, text_of(setting))]);
            if IN_USE.contains(&setting) {
                assert_eq!(warnings, [], "{name}");
            } else {
                assert_eq!(options, default, "{name}");
                assert!(
                    matches!(&warnings[..], [warning] if warning.text.contains(&name)),
                    "{name}: {warnings:?}"
                );
            }
        }
    }
}

#[test]
fn all_settings_together_are_accepted_with_one_warning() {
    let named: Vec<String> = settings().iter().map(|setting| format!("kafka.{setting}")).collect();
    let texts: Vec<_> = named.iter().map(|name| (name.as_str(), text_of(&name["kafka.".len()..]))).collect();
    let (options, warnings) = read(&texts);
    assert_eq!(options.isolation_level, IsolationLevel::ReadCommitted);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for setting in settings() {
        let is_ignored = warnings[0].text.split([' ', ',']).any(|word| word == format!("kafka.{setting}"));
        assert_eq!(is_ignored, !IN_USE.contains(&setting), "{setting}: {warnings:?}");
    }
}

#[test]
fn settings_with_a_meaning_are_other_names_of_options() {
    for (name, other, text, default) in [
        ("kafka.check.crcs", "checkCrc", "false", "true"),
        ("kafka.isolation.level", "isolationLevel", "read_committed", "read_uncommitted"),
        ("kafka.exclude.internal.topics", "excludeInternalTopics", "true", "false"),
    ] {
        let options = read(&[(name, text)]).0;
        assert_eq!(options, read(&[(other, text)]).0, "{name}");
        assert_eq!(options, read(&[(other, text), (name, &text.to_uppercase())]).0, "{name}");
        assert_ne!(options, read(&[]).0, "{name}");
        assert_eq!(options.to_texts().get(other).map(String::as_str), Some(text), "by its first name");
        assert!(!options.to_texts().contains_key(name), "{name}");
        let texts = [("path", "data"), (name, text), (other, default)];
        let error = SourceOptions::from_texts(texts, &mut Vec::new()).unwrap_err();
        assert!(error.reason.contains(text) && error.reason.contains(other), "{error}");
    }
}
