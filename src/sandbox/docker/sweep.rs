//! Removes what a process that died without a word has left: containers whose lifeline did not end them (their
//! engine was down, or they had none) and networks. What belongs to a live process is not touched.

use super::container;
use super::egress::remove_network;
use super::owner::{OWNER, is_dead, is_dead_file};
use bollard::Docker;
use bollard::query_parameters::{ListContainersOptionsBuilder, ListNetworksOptionsBuilder};
use std::collections::HashMap;

pub async fn sweep(api: Docker) {
    sweep_sockets();
    let filters = || HashMap::from([("label".to_owned(), vec![OWNER.to_owned()])]);
    let dead = |labels: &Option<HashMap<String, String>>| {
        let owner = labels.as_ref().and_then(|labels| labels.get(OWNER));
        owner.is_some_and(|owner| is_dead(owner))
    };
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&filters())
        .build();
    let containers = api.list_containers(Some(options)).await.unwrap_or_default();
    for id in containers
        .into_iter()
        .filter(|found| dead(&found.labels))
        .filter_map(|found| found.id)
    {
        container::remove(api.clone(), id).await;
    }
    let options = ListNetworksOptionsBuilder::default().filters(&filters()).build();
    let networks = api.list_networks(Some(options)).await.unwrap_or_default();
    for id in networks
        .into_iter()
        .filter(|found| dead(&found.labels))
        .filter_map(|found| found.id)
    {
        remove_network(&api, &id).await;
    }
}

/// Folders of containers whose start was cut off by the end of their process. Two names at most are in each.
fn sweep_sockets() {
    for entry in std::fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.file_name().to_str().is_some_and(is_dead_file) {
            let _ = std::fs::remove_file(entry.path().join("socket"));
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}
