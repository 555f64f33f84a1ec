//! What tools say of an object in each state of the machine: exactly one thing, and the right one.

use capt_status::{
    State, Time, condition,
    kstatus::{
        Kstatus, Object, Wait,
        argo::{
            self,
            ArgoHealth::{Degraded, Healthy, Progressing},
        },
        compute,
    },
    machine::{self, Cause},
};

#[test]
fn each_state_of_ours_says_one_thing_to_every_tool() {
    for (state, served, kstatus, health) in [
        (State::Pending, false, Kstatus::InProgress, Progressing),
        (State::Validating, false, Kstatus::InProgress, Progressing),
        (State::Provisioning, false, Kstatus::InProgress, Progressing),
        (State::Provisioning, true, Kstatus::InProgress, Progressing),
        (State::Configuring, false, Kstatus::InProgress, Progressing),
        (State::Ready, true, Kstatus::Current, Healthy),
        (State::Degraded, true, Kstatus::Current, Healthy),
        (State::Recovering, false, Kstatus::InProgress, Progressing),
        (State::Recovering, true, Kstatus::InProgress, Progressing),
        (State::Failed, false, Kstatus::Failed, Degraded),
        (State::Deleting, true, Kstatus::Terminating, Progressing),
    ] {
        let cause = Cause::new("Because", "because");
        let verdicts = machine::verdicts(state, served, state == State::Failed, &cause, served);
        let mut conditions = condition::merge(&[], verdicts, 2, Time::from_unix(0));
        // The list is a map: the answer must not depend on its order.
        for _ in 0..conditions.len() {
            conditions.rotate_left(1);
            let object =
                Object::new("Database", &conditions).generations(2, Some(2)).deleting(state == State::Deleting);
            assert_eq!(compute(&object).status, kstatus, "{state:?} served={served}");
            assert_eq!(argo::health(&object).0, health, "{state:?} served={served}");
            let ready = Wait::parse("condition=Ready").unwrap().is_met(&object);
            assert_eq!(ready, condition::is_true(&conditions, "Ready"), "{state:?}");
        }
    }
}
