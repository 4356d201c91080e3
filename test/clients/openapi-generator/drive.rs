//! `drive URL TOKEN NAME`: applies an application with most fields, then with the required ones alone, without waiting, and a set
//! of two. It lists users and providers.

use std::sync::Arc;

use gatewright::apis::blueprints_api::*;
use gatewright::apis::configuration::Configuration;
use gatewright::apis::core_api::{CoreTransactionalApplicationsUpdateSuccess as Applied, *};
use gatewright::apis::providers_api::*;
use gatewright::models::*;
use serde_json::json;

const FLOW: &str = "default-authorization-explicit";

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(drive());
}

async fn drive() {
    let [url, token, name]: [String; 3] = std::env::args().skip(1).collect::<Vec<_>>().try_into().unwrap();
    let configuration = Configuration { base_path: url, bearer_access_token: Some(token), ..Configuration::new() };
    let configuration = Arc::new(configuration);
    let core = CoreApiClient::new(configuration.clone());

    let first = put(&core, submission(full_application(&name), full_provider(&name)), None).await;
    let second = put(&core, minimal(&name), None).await;
    let accepted = put(&core, minimal(&format!("{name}-later")), Some("respond-async".into())).await;
    let (Applied::Status200(first), Applied::Status200(second), Applied::Status202(accepted)) = (first, second, accepted) else {
        panic!("a 202 cannot be told from a 200")
    };

    let submissions = ApplicationSubmissions::new(vec![minimal(&format!("{name}-a")), minimal(&format!("{name}-b"))]);
    let both = BlueprintOrSubmissions::ApplicationSubmissions(Box::new(submissions));
    let sent = BlueprintsUpdateParams::builder().blueprint_or_submissions(both).build();
    let set = BlueprintsApiClient::new(configuration.clone()).blueprints_update(sent).await.unwrap();
    let Some(BlueprintsUpdateSuccess::Status200(set)) = set.entity else { panic!("{}", set.content) };

    let ordering = vec![ProviderOrdering::PROVIDER_ORDERING_NAME_DESC, ProviderOrdering::PROVIDER_ORDERING_PK];
    let named = ProvidersAllListParams::builder().name(name).ordering(ordering).build();
    let listed = ProvidersApiClient::new(configuration).providers_all_list(named).await.unwrap();
    let Some(ProvidersAllListSuccess::Status200(listed)) = listed.entity else { panic!("{}", listed.content) };
    let provider = |each: &ReadProvider| match each {
        ReadProvider::ServiceProvidersOauth2Oauth2provider(provider) => json!([provider.name, provider.client_type]),
        other => panic!("{other:?}"),
    };

    let all = CoreUsersListParams::builder().groups_by_pk(vec![]).build();
    let users = core.core_users_list(all).await.unwrap();
    let Some(CoreUsersListSuccess::Status200(users)) = users.entity else { panic!("{}", users.content) };
    let result = json!({
        "first": first.logs, "second": second.logs, "accepted": accepted.run, "set": set.logs,
        "users": users.pagination.count, "providers": listed.results.iter().map(provider).collect::<Vec<_>>(),
    });
    println!("{result}");
}

async fn put(core: &CoreApiClient, sent: ApplicationSubmission, prefer: Option<String>) -> Applied {
    let sent = CoreTransactionalApplicationsUpdateParams::builder().application_submission(sent).maybe_prefer(prefer).build();
    core.core_transactional_applications_update(sent).await.unwrap().entity.unwrap()
}

fn submission(app: ApplicationFields, provider: Oauth2Provider) -> ApplicationSubmission {
    let model = oauth2_submission::ProviderModel::ServiceProvidersOauth2Oauth2provider;
    ApplicationSubmission::ServiceProvidersOauth2Oauth2provider(Box::new(Oauth2Submission::new(app, model, provider)))
}

fn minimal(name: &str) -> ApplicationSubmission {
    submission(ApplicationFields::new(name.into(), name.into()), Oauth2Provider::new(name.into(), FLOW.into()))
}

/// A field that may be null: it is left out, or null, or has a value.
fn value<Value>(value: impl Into<Value>) -> Option<Option<Value>> {
    Some(Some(value.into()))
}

fn full_application(name: &str) -> ApplicationFields {
    ApplicationFields {
        open_in_new_tab: value(true),
        meta_launch_url: value("https://wiki.example.com/"),
        meta_description: value("Pages of the team"),
        meta_publisher: value("Example"),
        policy_engine_mode: value(PolicyEngineMode::All),
        group: value("Documents"),
        ..ApplicationFields::new(name.into(), name.into())
    }
}

fn full_provider(name: &str) -> Oauth2Provider {
    let redirect = Oauth2ProviderRedirectUrisInner::new(MatchingMode::Strict, "https://wiki.example.com/in".into());
    Oauth2Provider {
        authentication_flow: value("default-authentication"),
        invalidation_flow: value("default-provider-invalidation"),
        property_mappings: value(["gatewright/oauth2/scope-openid".into()]),
        client_type: value(ClientType::Public),
        access_code_validity: value("minutes=5"),
        access_token_validity: value("hours=2"),
        refresh_token_validity: value("days=14"),
        include_claims_in_id_token: value(false),
        signing_key: value("Gatewright self-signed"),
        redirect_uris: value([redirect]),
        sub_mode: value(SubMode::UserUuid),
        issuer_mode: value(IssuerMode::Global),
        ..Oauth2Provider::new(name.into(), FLOW.into())
    }
}
