"""
`drive.py URL TOKEN NAME`: applies an application with most fields, then with the required ones alone, without waiting, and a set of
two. It lists users and providers.
"""

import json
import sys

from gatewright_client import (
    ApiClient,
    ApplicationFields,
    ApplicationSubmission,
    ApplicationSubmissions,
    ApplyResult,
    BlueprintOrSubmissions,
    BlueprintsApi,
    ClientType,
    Configuration,
    CoreApi,
    IssuerMode,
    MatchingMode,
    Oauth2Provider,
    Oauth2ProviderRedirectUrisInner,
    Oauth2Submission,
    PolicyEngineMode,
    ProviderOrdering,
    ProvidersApi,
    SubMode,
)

url, token, name = sys.argv[1:]
client = ApiClient(Configuration(host=url, access_token=token))
core = CoreApi(client)
flow = "default-authorization-explicit"


def submission(app, provider):
    body = Oauth2Submission(app=app, provider_model="service_providers_oauth2.oauth2provider", provider=provider)
    return ApplicationSubmission(body)


def minimal(name):
    return submission(ApplicationFields(name=name, slug=name), Oauth2Provider(name=name, authorization_flow=flow))


def put(sent, **headers):
    """The logs of a 200; of a 202, which has no result to read, the run."""
    raw = core.core_transactional_applications_update_without_preload_content(sent, **headers)
    body = json.loads(raw.read())
    return body["run"] if raw.status == 202 else ApplyResult.from_dict(body).logs


first = put(
    submission(
        ApplicationFields(
            name=name,
            slug=name,
            open_in_new_tab=True,
            meta_launch_url="https://wiki.example.com/",
            meta_description="Pages of the team",
            meta_publisher="Example",
            policy_engine_mode=PolicyEngineMode.ALL,
            group="Documents",
        ),
        Oauth2Provider(
            name=name,
            authentication_flow="default-authentication",
            authorization_flow=flow,
            invalidation_flow="default-provider-invalidation",
            property_mappings=["gatewright/oauth2/scope-openid"],
            client_type=ClientType.PUBLIC,
            access_code_validity="minutes=5",
            access_token_validity="hours=2",
            refresh_token_validity="days=14",
            include_claims_in_id_token=False,
            signing_key="Gatewright self-signed",
            redirect_uris=[
                Oauth2ProviderRedirectUrisInner(matching_mode=MatchingMode.STRICT, url="https://wiki.example.com/in")
            ],
            sub_mode=SubMode.USER_UUID,
            issuer_mode=IssuerMode.GLOBAL,
        ),
    )
)
second = put(minimal(name))
accepted = put(minimal(f"{name}-later"), prefer="respond-async")
submissions = ApplicationSubmissions(submissions=[minimal(f"{name}-a"), minimal(f"{name}-b")])
applied = BlueprintsApi(client).blueprints_update(BlueprintOrSubmissions(submissions)).logs
listed = ProvidersApi(client).providers_all_list(
    name=name, ordering=[ProviderOrdering.PROVIDER_ORDERING_NAME_DESC, ProviderOrdering.PROVIDER_ORDERING_PK]
)
providers = [[each.actual_instance.name, each.actual_instance.client_type] for each in listed.results]
users = core.core_users_list(groups_by_pk=[]).pagination.count
result = {"first": first, "second": second, "accepted": accepted, "set": applied, "users": users, "providers": providers}
print(json.dumps(result))
