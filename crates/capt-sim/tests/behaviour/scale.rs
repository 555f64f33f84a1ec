//! Many clusters cost what one costs, times their number.

use crate::whole_life::{Cost, cost};

#[test]
fn each_of_fifty_clusters_is_written_as_often_as_one_and_at_rest_nothing_is_asked() {
    let one = cost(1);
    println!("one cluster: {one:?}");
    let Cost { writes, requests, at_rest, changes } = one;
    assert_eq!(at_rest, 0);
    assert_eq!(writes, 42, "for a whole life with an update");
    let many = Cost { writes: 50 * writes, requests: 50 * requests, at_rest: 0, changes: 50 * (changes - 2) + 2 };
    assert_eq!(cost(50), many, "two templates, and fifty lives");
}
