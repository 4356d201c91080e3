"""`drive.py URL TOKEN NAME`: applies an application with most fields, then with the required ones alone, and lists users."""

import json
import sys

from gatewright_client import (
    ApiClient,
    ApplicationFields,
    ApplicationSubmission,
    ClientType,
    Configuration,
    CoreApi,
    IssuerMode,
    MatchingMode,
    Oauth2Provider,
    Oauth2ProviderRedirectUrisInner,
    Oauth2Submission,
    PolicyEngineMode,
    SubMode,
)

url, token, name = sys.argv[1:]
core = CoreApi(ApiClient(Configuration(host=url, access_token=token)))
flow = "default-authorization-explicit"


def put(app, provider):
    body = Oauth2Submission(app=app, provider_model="service_providers_oauth2.oauth2provider", provider=provider)
    return core.core_transactional_applications_update(ApplicationSubmission(body)).logs


first = put(
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
second = put(ApplicationFields(name=name, slug=name), Oauth2Provider(name=name, authorization_flow=flow))
users = core.core_users_list(groups_by_pk=[]).pagination.count
print(json.dumps({"first": first, "second": second, "users": users}))
