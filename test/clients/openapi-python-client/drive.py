"""
`drive.py URL TOKEN NAME`: applies an application with most fields, then with the required ones alone, without waiting, and a set of
two. It lists users and providers.
"""

import json
import sys

from gatewright_client import AuthenticatedClient
from gatewright_client.api.blueprints import blueprints_update
from gatewright_client.api.core import core_transactional_applications_update as apply
from gatewright_client.api.core import core_users_list
from gatewright_client.api.providers import providers_all_list
from gatewright_client.models import (
    Accepted,
    ApplicationFields,
    ApplicationSubmissions,
    ApplyResult,
    ClientType,
    IssuerMode,
    MatchingMode,
    Oauth2Provider,
    Oauth2ProviderRedirectUrisType0Item,
    Oauth2Submission,
    Oauth2SubmissionProviderModel,
    PaginatedReadProviderList,
    PaginatedUserList,
    PolicyEngineMode,
    ProviderOrdering,
    SubMode,
)

url, token, name = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
flow = "default-authorization-explicit"


def submission(app, provider):
    model = Oauth2SubmissionProviderModel.SERVICE_PROVIDERS_OAUTH2_OAUTH2PROVIDER
    return Oauth2Submission(app=app, provider_model=model, provider=provider)


def minimal(name):
    return submission(ApplicationFields(name=name, slug=name), Oauth2Provider(name=name, authorization_flow=flow))


def put(body, **headers):
    """The logs of a 200; of a 202, which has a type of its own, the run."""
    answer = apply.sync(client=client, body=body, **headers)
    if isinstance(answer, Accepted):
        return answer.run
    assert isinstance(answer, ApplyResult), answer
    return answer.logs


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
                Oauth2ProviderRedirectUrisType0Item(matching_mode=MatchingMode.STRICT, url="https://wiki.example.com/in")
            ],
            sub_mode=SubMode.USER_UUID,
            issuer_mode=IssuerMode.GLOBAL,
        ),
    )
)
second = put(minimal(name))
accepted = put(minimal(f"{name}-later"), prefer="respond-async")
submissions = ApplicationSubmissions(submissions=[minimal(f"{name}-a"), minimal(f"{name}-b")])
applied = blueprints_update.sync(client=client, body=submissions)
assert isinstance(applied, ApplyResult), applied
listed = providers_all_list.sync(
    client=client,
    name=name,
    ordering=[ProviderOrdering.PROVIDER_ORDERING_NAME_DESC, ProviderOrdering.PROVIDER_ORDERING_PK],
)
assert isinstance(listed, PaginatedReadProviderList), listed
providers = [[each.name, each.client_type] for each in listed.results]
users = core_users_list.sync(client=client, groups_by_pk=[])
assert isinstance(users, PaginatedUserList), users
result = {"first": first, "second": second, "accepted": accepted, "set": applied.logs, "providers": providers}
print(json.dumps({**result, "users": users.pagination.count}))
