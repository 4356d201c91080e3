"""`drive.py URL TOKEN BODY`: applies BODY, then only what identifies it, and prints the logs of both."""

import json
import sys

from gatewright_client import AuthenticatedClient
from gatewright_client.api.core import core_transactional_applications_update as apply
from gatewright_client.api.core import core_users_list
from gatewright_client.models import ApplyResult, Oauth2Submission, PaginatedUserList

url, token, body = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)


def put(submission):
    answer = apply.sync(client=client, body=Oauth2Submission.from_dict(submission))
    assert isinstance(answer, ApplyResult), answer
    return answer.logs


full = json.loads(body)
minimal = {
    "app": {key: full["app"][key] for key in ("name", "slug")},
    "provider_model": full["provider_model"],
    "provider": {key: full["provider"][key] for key in ("name", "authorization_flow")},
}
users = core_users_list.sync(client=client, groups_by_pk=[])
assert isinstance(users, PaginatedUserList), users
print(json.dumps({"first": put(full), "second": put(minimal), "users": users.pagination.count}))
